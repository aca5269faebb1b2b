"""The section `hosts`: what it means, and the line for each thing that is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus_sched.agent.config.pack_files import load_pack
from argus_sched.agent.config.settings import AgentSettings, load_settings
from argus_sched.agent.hosts import HostSpec, TlsFiles
from argus_sched.agent.packs import LogSpec
from argus_sched.errors import SettingsError

PACK = """\
app: labs
logs: {LOGS}
checks: [{kind: scheduler_jobs, jobs: [{id: a, name: A, every: 15m}]}]
"""
FORMS = "expected unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST, got"


def settings(folder: Path, text: str) -> AgentSettings:
    path = folder / "argus.yaml"
    path.write_text(text)
    return load_settings(str(path), {"TLS": "/etc/tls"})


def test_each_way_to_a_daemon_arrives_in_its_value(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        "hosts:\n"
        "  alpha: {docker: 'ssh://argus@alpha.example:2222'}\n"
        "  beta: {docker: 'tcp://[fd00::5]:2376', tls: {ca: ca.pem, cert: '${TLS}/c.pem', key: /k.pem}}\n"
        "  gamma: {context: gamma}\n"
        "  delta: {docker: unix:///run/user/1000/docker.sock}\n",
    ).hosts
    assert found == {
        "local": HostSpec(),
        "alpha": HostSpec("alpha", "ssh://argus@alpha.example:2222"),
        "beta": HostSpec(
            "beta", "tcp://[fd00::5]:2376", TlsFiles(f"{tmp_path}/ca.pem", "/etc/tls/c.pem", "/k.pem")
        ),
        "gamma": HostSpec("gamma", context="gamma"),
        "delta": HostSpec("delta", "unix:///run/user/1000/docker.sock"),
    }
    assert [host.machine for host in found.values()] == [None, "alpha.example", "fd00::5", None, None]


@pytest.mark.parametrize(
    ("hosts", "line"),
    [
        ("{local: {docker: unix:///x}}", "hosts.local: 'local' is the daemon that DOCKER_HOST names: give another name"),
        ("{'a b': {context: x}}", "hosts.a b: must be up to 63 letters, digits, '-', '_' or '.', got 'a b'"),
        ("{a: unix:///x}", "hosts.a: expected a mapping, got 'unix:///x'"),
        ("{a: {}}", "hosts.a: needs docker or context"),
        ("{a: {docker: unix:///x, context: y}}", "hosts.a.context: is given beside docker: keep one of them"),
        ("{a: {docker: 'unix://x'}}", f"hosts.a.docker: {FORMS} 'unix://x'"),
        ("{a: {docker: 'tcp://x'}}", f"hosts.a.docker: {FORMS} 'tcp://x'"),
        ("{a: {docker: 'tcp://x:1/path'}}", f"hosts.a.docker: {FORMS} 'tcp://x:1/path'"),
        ("{a: {docker: 'http://x:1'}}", f"hosts.a.docker: {FORMS} 'http://x:1'"),
        ("{a: {docker: 'ssh://-oProxyCommand=x'}}", f"hosts.a.docker: {FORMS} 'ssh://-oProxyCommand=x'"),
        ("{a: {docker: 'ssh://-l@x'}}", f"hosts.a.docker: {FORMS} 'ssh://-l@x'"),
        ("{a: {docker: 'ssh://x:y'}}", f"hosts.a.docker: {FORMS} 'ssh://x:y'"),
        (
            "{a: {docker: 'ssh://u:p@x'}}",
            "hosts.a.docker: a password must not stand in YAML: ssh takes keys, tcp takes tls",
        ),
        ("{a: {docker: 'ssh://x', tls: {ca: a, cert: b, key: c}}}", "hosts.a.tls: is for a tcp:// daemon only"),
        (
            "{a: {context: x, tls: {ca: a, cert: b, key: c}}}",
            "hosts.a.tls: a docker context brings its own certificates",
        ),
        ("{a: {docker: 'tcp://x:1', tls: {ca: a, cert: b}}}", "hosts.a.tls.key: is missing"),
        ("{a: {docker: 'tcp://x:1', tsl: {}}}", "hosts.a.tsl: unknown key, did you mean 'tls'?"),
    ],
)  # fmt: skip
def test_a_wrong_host_is_one_line_with_its_place(tmp_path: Path, hosts: str, line: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, f"hosts: {hosts}\n")
    assert str(caught.value) == f"{tmp_path}/argus.yaml:1: {line}"


def test_a_pack_names_a_host_of_the_config(tmp_path: Path) -> None:
    defaults = settings(tmp_path, "hosts: {alpha: {context: x}}\n").defaults
    pack = tmp_path / "labs.yaml"
    pack.write_text(PACK.replace("LOGS", "docker: {container: web, host: alpha}"))
    logs = load_pack(str(pack), {}, defaults).logs
    assert logs == LogSpec(container="web", host="alpha")
    assert (logs.node, logs.host_node) == ("docker:web", "host:alpha")
    pack.write_text(PACK.replace("LOGS", "docker: {container: web, host: alhpa}"))
    with pytest.raises(
        SettingsError, match=r"logs.docker.host: 'alhpa' is no host .*, did you mean 'alpha'\?"
    ):
        load_pack(str(pack), {}, defaults)


@pytest.mark.parametrize(
    ("written", "unit"),
    [("labs", "labs.service"), ("labs.service", "labs.service"), ("a@b-1.scope", "a@b-1.scope"), ("v1.2", "v1.2.service")],
)  # fmt: skip
def test_a_pack_names_a_unit(tmp_path: Path, written: str, unit: str) -> None:
    pack = tmp_path / "labs.yaml"
    pack.write_text(PACK.replace("LOGS", f"journal: {{unit: {written}, directory: copies}}, window: 2h"))
    logs = load_pack(str(pack), {}).logs
    assert logs is not None
    assert (logs.unit, logs.directory, logs.node) == (unit, f"{tmp_path}/copies", f"journal:{unit}")
    assert logs.host_node is None
