"""The demo's page: what each path answers, and that no name on it can become markup."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from argus_sched.errors import SettingsError
from argus_sched.harness.live import Pages, Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    report = tmp_path / "report.html"
    report.write_text("<h1>what happened</h1>")
    return Scene(
        leader="worker-1 (process 7)",
        workers=("worker-1 (process 7): leader", "worker-2 (process 8): heir"),
        table="STATUS PHASE\nOK fresh <job> & co",
        at=1_800_000_000.0,
        metrics=b"argus_up 1\n",
        messages=("1 CRIT",),
        report=report,
    )


@pytest.fixture
def pages() -> Iterator[Pages]:
    with Pages(0) as served:
        yield served


def get(pages: Pages, path: str) -> tuple[str, str]:
    """Content type and body."""
    with urllib.request.urlopen(pages.url + path, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_before_the_first_scene_it_says_that_the_story_goes_on(pages: Pages) -> None:
    assert "still being told" in get(pages, "")[1]
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        get(pages, "metrics")
    refused.value.close()


def test_it_shows_leader_workers_table_and_messages(pages: Pages, scene: Scene) -> None:
    pages.scene = scene
    kind, body = get(pages, "?again")
    assert kind == "text/html; charset=utf-8"
    assert '<span id="leader">worker-1 (process 7)</span>' in body
    assert "<li>worker-2 (process 8): heir</li>" in body
    assert "said at 08:00:00 UTC" in body
    assert "OK fresh &lt;job&gt; &amp; co" in body
    assert "<pre>1 CRIT</pre>" in body
    assert 'href="/report"' in body
    assert 'href="/metrics"' in body


def test_no_message_means_no_heading(pages: Pages, scene: Scene) -> None:
    pages.scene = replace(scene, messages=())
    assert "Messages" not in get(pages, "")[1]


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("metrics", "text/plain; version=0.0.4; charset=utf-8", "argus_up 1\n"),
        ("report", "text/html; charset=utf-8", "<h1>what happened</h1>"),
    ],
)
def test_metrics_and_report_are_served_as_they_are(
    pages: Pages, scene: Scene, path: str, kind: str, body: str
) -> None:
    pages.scene = scene
    assert get(pages, path) == (kind, body)


@pytest.mark.parametrize("path", ["etc/passwd", "../report", "report/"])
def test_nothing_else_is_served(pages: Pages, scene: Scene, path: str) -> None:
    pages.scene = scene
    assert pages.answer(f"/{path}").status == 404


def test_it_listens_on_this_machine_alone(pages: Pages) -> None:
    assert pages.url.startswith("http://127.0.0.1:")


def test_a_port_that_cannot_be_served_is_refused_with_its_number(pages: Pages) -> None:
    taken = int(pages.url.rpartition(":")[2].rstrip("/"))
    for port in (taken, 70_000):
        with pytest.raises(SettingsError, match=f"port {port} .* name another with --port"):
            Pages(port)
