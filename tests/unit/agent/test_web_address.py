"""Of an address only host and port are shown, and no answer that repeats a part of it shows that part."""

from __future__ import annotations

import pytest

from argus_sched.agent.web_address import WebAddress

URL = "https://ops:pa%40ss@hooks.example:8443/services/T0123456/s3cr3tS3cr3t?token=abcdefgh"


@pytest.mark.parametrize(
    "answer",
    [
        URL,
        "Cannot POST /services/T0123456/s3cr3tS3cr3t?token=abcdefgh",
        "no such hook: s3cr3tS3cr3t",
        "bad token abcdefgh",
        "wrong password pa%40ss, that is pa@ss",
        "not allowed: Basic b3BzOnBhQHNz",
    ],
)
def test_an_answer_shows_no_part_that_is_a_key(answer: str) -> None:
    shown = WebAddress(URL).redact(answer)
    assert "***" in shown
    assert [key for key in ("s3cr3tS3cr3t", "abcdefgh", "pa%40ss", "pa@ss", "b3Bz") if key in shown] == []


def test_the_words_of_a_path_that_are_no_keys_stay() -> None:
    assert WebAddress("http://h:9093/api/v2").redact("no api v2 at h:9093") == "no api v2 at h:9093"


def test_the_user_is_a_header_and_no_part_of_the_host() -> None:
    address = WebAddress(URL)
    assert address.host == "hooks.example:8443"
    assert address.split_user() == (
        "https://hooks.example:8443/services/T0123456/s3cr3tS3cr3t?token=abcdefgh",
        {"Authorization": "Basic b3BzOnBhQHNz"},
    )
    assert WebAddress("http://h/x").split_user() == ("http://h/x", {})
