"""The agent's settings: where they are found, what they hold, and the line for each thing that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from argus_sched import due_times
from argus_sched.agent.config import settings as settings_module
from argus_sched.agent.config.channels import AlertmanagerSettings, TelegramSettings, WebhookSettings
from argus_sched.agent.config.notify_policy import FlappingSettings, MaintenanceWindow, NotifySettings
from argus_sched.agent.config.settings import AgentSettings, default_state, find_config, load_settings
from argus_sched.agent.packs import PackDefaults
from argus_sched.errors import SettingsError

ROOT = Path(__file__).parents[4]
HOUR = timedelta(hours=1)

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes one config and returns its path."""

    def write(content: str) -> str:
        path = tmp_path / "argus.yaml"
        path.write_text(content)
        return str(path)

    return write


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the system's config would be, in a folder of this test's own."""
    path = tmp_path / "etc" / "argus.yaml"
    monkeypatch.setattr(settings_module, "SYSTEM_CONFIG", str(path))
    return path


class TestWhereTheConfigIsFound:
    def test_the_argument_goes_before_the_variable_before_the_system(self, system: Path) -> None:
        system.parent.mkdir()
        system.touch()
        assert find_config("a.yaml", {"ARGUS_CONFIG": "b.yaml"}) == "a.yaml"
        assert find_config(None, {"ARGUS_CONFIG": "b.yaml"}) == "b.yaml"
        assert find_config(None, {"ARGUS_CONFIG": ""}) == str(system)

    def test_the_working_directory_is_never_searched(
        self, system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("argus.yaml", "config/argus.yaml"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("every: 7m\n")
        monkeypatch.chdir(tmp_path)
        settings = load_settings(None, {"XDG_STATE_HOME": "/state"})
        assert settings == AgentSettings(path=None, state=Path("/state/argus-sched/state.db"))

    def test_a_named_config_that_is_not_there_is_an_error(self, system: Path) -> None:
        with pytest.raises(SettingsError, match=r"gone\.yaml:1: cannot be read: No such file or directory"):
            load_settings("/nowhere/gone.yaml", {})


@pytest.mark.parametrize(
    ("environ", "state"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/a"}, "/state/argus-sched/state.db"),
        ({"HOME": "/home/a"}, "/home/a/.local/state/argus-sched/state.db"),
        ({"XDG_STATE_HOME": "", "HOME": "/home/a"}, "/home/a/.local/state/argus-sched/state.db"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/a"}, "/home/a/.local/state/argus-sched/state.db"),
    ],
)
def test_state_is_kept_in_the_state_folder_of_xdg(environ: dict[str, str], state: str) -> None:
    assert default_state(environ) == Path(state)


def test_every_setting_arrives_in_its_value(write: Write, tmp_path: Path) -> None:
    path = write(
        """\
state: state/argus.db
packs: [checks/*.yaml, /etc/other.yaml]
every: 5m
deadline: 50s
read_timeout: 5s
textfile: argus.prom
heartbeat_url: ${HEARTBEAT}
defaults: {grace: 20m, timezone: Europe/Stockholm, window: 48h, takeover: 30s}
telegram: {token_file: token, chat_id: -1001234567890, thread_id: 7, api_url: "http://localhost:8081/"}
webhook: {url: "https://example.org/hook"}
alertmanager: {url: "http://localhost:9093"}
notify: {fire_after: 2, resolve_after: 3, reminders: [2h], flapping: {low: 20, high: 40}}
maintenance:
  - {match: "labs/*", cron: "0 2 * * sun", for: 2h, reason: "weekly deployment"}
"""
    )
    assert load_settings(path, {"HEARTBEAT": "https://example.org/ping"}) == AgentSettings(
        path=path,
        state=tmp_path / "state/argus.db",
        packs=(str(tmp_path / "checks/*.yaml"), "/etc/other.yaml"),
        every=timedelta(minutes=5),
        deadline=timedelta(seconds=50),
        read_timeout=timedelta(seconds=5),
        textfile=str(tmp_path / "argus.prom"),
        heartbeat_url="https://example.org/ping",
        telegram=TelegramSettings(
            "-1001234567890", None, str(tmp_path / "token"), 7, "http://localhost:8081"
        ),
        webhook=WebhookSettings("https://example.org/hook"),
        alertmanager=AlertmanagerSettings("http://localhost:9093"),
        notify=NotifySettings(2, 3, (2 * HOUR,), FlappingSettings(20, 40)),
        maintenance=(
            MaintenanceWindow(
                "labs/*", due_times.cron("0 2 * * sun", "Europe/Stockholm"), 2 * HOUR, "weekly deployment"
            ),
        ),
        defaults=PackDefaults(
            20 * timedelta(minutes=1), "Europe/Stockholm", 48 * HOUR, timedelta(seconds=30)
        ),
    )


@pytest.mark.parametrize("chat", ["@channel", "42", "${CHAT}"])
def test_a_chat_is_a_number_or_a_channel(write: Write, chat: str) -> None:
    settings = load_settings(
        write(f"telegram: {{token_env: T, chat_id: '{chat}'}}".replace("'42'", "42")), {"CHAT": "-5"}
    )
    assert settings.telegram is not None
    assert settings.telegram.chat_id == chat.replace("${CHAT}", "-5")


def test_no_reminders_is_a_choice(write: Write) -> None:
    assert load_settings(write("notify: {reminders: []}"), {}).notify.reminders == ()


def test_addresses_that_may_be_secret_are_in_no_repr(write: Write) -> None:
    path = write("heartbeat_url: ${U}\nwebhook: {url: '${U}'}\nalertmanager: {url: '${U}'}\n")
    settings = load_settings(path, {"U": "https://u:hunter2@example.org/x"})
    assert settings.heartbeat_url == "https://u:hunter2@example.org/x"
    assert "hunter2" not in repr(settings)


WRONG = [
    ("telegram: {chat_id: 5}", ":1: telegram: needs token_env or token_file"),
    ("telegram: {token_env: T}", ":1: telegram.chat_id: is missing"),
    (
        "telegram: {token: '123:abc', chat_id: 5}",
        ":1: telegram.token: a token must not stand in YAML: name it with token_env or token_file",
    ),
    (
        "telegram: {token_env: '123:abc', chat_id: 5}",
        ":1: telegram.token_env: must be the name of an environment variable, not its value",
    ),
    (
        "telegram: {token_env: T, chat_id: me}",
        ":1: telegram.chat_id: expected the number of a chat, or '@channel', got text",
    ),
    (
        "telegram: {token_env: T, chat_id: 5, thread_id: 0}",
        ":1: telegram.thread_id: must be from 1 to 9007199254740992, got a number",
    ),
    ("stat: state.db", ":1: stat: unknown key, did you mean 'state'?"),
    ("telegramm: {}", ":1: telegramm: unknown key, did you mean 'telegram'?"),
    (
        "webhook: {url: 'ftp://example.org'}",
        ":1: webhook.url: expected an http or https URL, got text",
    ),
    *(
        (
            f"webhook: {{url: {url}}}",
            (
                ":1: webhook.url: special characters of a URL must be percent-encoded: "
                "@ is %40, / in a password %2F, a blank %20"
            ),
        )
        for url in ("http://h/a b", "http://h/é", "'http://u:12/34@h/x'", '"http://h/\\x7f"')
    ),
    ("webhook: {url: 'http://u:pass/word@h'}", ":1: webhook.url: expected an http or https URL, got text"),
    ("webhook: {}", ":1: webhook.url: is missing"),
    ("alertmanager: {url: 'http://'}", ":1: alertmanager.url: expected an http or https URL, got text"),
    (
        "heartbeat_url: 'http://[::1/x'",
        ":1: heartbeat_url: expected an http or https URL, got text",
    ),
    (
        "heartbeat_url: 'https://u:hunter2@example.org'",
        ":1: heartbeat_url: a password must not stand in YAML: take the URL from the environment with ${NAME}",
    ),
    ("every: 60", ":1: every: expected a duration such as 90s, 15m, 26h or 1d, got the number 60"),
    ("read_timeout: 2m", ":1: read_timeout: must not be longer than deadline, which bounds the whole pass"),
    ("packs: checks/*.yaml", ":1: packs: expected a list, got 'checks/*.yaml'"),
    ("packs: []", ":1: packs: needs at least one path or pattern of check packs"),
    ('state: "/x/a\\0b"', ":1: state: must hold no NUL character, which no path can have"),
    (
        "state: ~nobody-of-this-name/x",
        ":1: state: begins in a home folder that is not known: write the whole path",
    ),
    ("packs: [a.yaml, 5]", ":1: packs[1]: expected text, got the number 5: put it in quotes"),
    ("notify: {fire_after: 0}", ":1: notify.fire_after: must be from 1 to 1000, got the number 0"),
    ("notify: {reminders: [1h, 0s]}", ":1: notify.reminders[1]: a duration must be above zero, got '0s'"),
    ("notify: {flapping: {low: 50}}", ":1: notify.flapping.low: must not be above high (30), got 50"),
    ("maintenance:\n  - {cron: '0 2 * * *', for: 2h}", ":2: maintenance[0].reason: is missing"),
    ("maintenance:\n  - {cron: '0 2 * * *', reason: x}", ":2: maintenance[0].for: is missing"),
    ("maintenance:\n  - {for: 2h, reason: x}", ":2: maintenance[0].cron: is missing"),
    (
        "defaults: {timezone: Mars}",
        ":1: defaults.timezone: time zone 'Mars' is not known here: use an IANA name such as Europe/Stockholm",
    ),
    ("defaults: 5", ":1: defaults: expected a mapping, got the number 5"),
    ("- every: 5m", ":1: expected a mapping of keys and values, got a list"),
    ("state: ${NOPE}/x", ":1: state: the variable NOPE is not set: set it or write ${NOPE:-default}"),
    ("every: 1m\nevery: 2m", ":2: every: is given twice, first in line 1"),
    (
        "every: [1m\nstate: x",
        ":2: is not YAML: while parsing a flow sequence that began in line 1, did not find expected ',' or ']'",
    ),
]


@pytest.mark.parametrize(("content", "line"), WRONG)
def test_a_wrong_setting_is_one_line_with_its_place(write: Write, content: str, line: str) -> None:
    path = write(content)
    with pytest.raises(SettingsError) as caught:
        load_settings(path, {})
    assert str(caught.value) == path + line
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "content",
    [
        "telegram: '123456789:hunter2'",
        "telegram: [hunter2]",
        "telegram: {token_env: T, chat_id: '123456789:hunter2'}",
        "telegram: {token:hunter2, chat_id: 5}",
        "telegram: {token_env: T, chat_id: 5, thread_id: hunter2}",
        "telegram: {token_env: T, chat_id: 5, api_url: 'ftp://u:hunter2@x'}",
        "telegram: {token_env: 'hunter2 and more', chat_id: 5}",
        "webhook: 'https://example.org/hunter2'",
        "webhook: {url: 'example.org/hunter2'}",
        "alertmanager: 'http://u:hunter2@example.org'",
        "heartbeat_url: 'https//u:hunter2@example.org'",
        "heartbeat_url: 'https://u:hunter2@example.org'",
        "heartbeat_url: {url: 'https://u:hunter2@example.org'}",
        "hosts: {a: {docker: 'tcp://u:hunter2@example.org:port'}}",
        "hosts: {a: {docker: 'tcp://u:hunter2@example.org'}}",
        "123456789:hunter2",
        "LABS_DATABASE_URL='postgresql://u:hunter2@h/d'\nNEXT='x'",
    ],
)
def test_no_message_holds_what_may_be_a_secret(write: Write, content: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(write(content), {})
    assert "hunter2" not in str(caught.value)


def test_a_user_without_a_home_is_told_to_set_the_state(
    write: Write, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(SettingsError, match=r"has no home to keep the state in: set `state:`"):
        load_settings(None, {})
    assert load_settings(write("state: /x/state.db"), {}).state == Path("/x/state.db")


def test_all_wrong_settings_are_told_at_once(write: Write) -> None:
    path = write("every: 1\nstate: 2\ntelegram: {chat: 5}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(path, {})
    assert [line.removeprefix(path) for line in str(caught.value).splitlines()] == [
        ":1: every: expected a duration such as 90s, 15m, 26h or 1d, got the number 1",
        ":2: state: expected text, got the number 2: put it in quotes",
        ":3: telegram: needs token_env or token_file",
        ":3: telegram.chat: unknown key, did you mean 'chat_id'?",
        ":3: telegram.chat_id: is missing",
    ]


@pytest.mark.parametrize(
    ("now", "covered"),
    [
        (datetime(2026, 3, 15, 0, 59, 59, tzinfo=UTC), False),
        (datetime(2026, 3, 15, 1, 0, tzinfo=UTC), True),
        (datetime(2026, 3, 15, 2, 59, 59, tzinfo=UTC), True),
        (datetime(2026, 3, 15, 3, 0, tzinfo=UTC), False),
    ],
)
def test_a_maintenance_window_covers_its_length_from_its_due_time(now: datetime, covered: bool) -> None:
    window = MaintenanceWindow("*", due_times.cron("0 2 * * sun", "Europe/Stockholm"), 2 * HOUR, "deployment")
    assert window.covers(now) is covered


class TestShippedConfig:
    TEXT = (ROOT / "config/argus.yaml").read_text()
    ENVIRON: ClassVar = {
        "ARGUS_HEARTBEAT_URL": "https://example.org/ping",
        "ARGUS_WEBHOOK_URL": "https://example.org/hook",
        "ARGUS_TELEGRAM_CHAT": "-100123",
    }

    def test_it_is_good_and_says_what_the_defaults_are(self) -> None:
        path = str(ROOT / "config/argus.yaml")
        assert load_settings(path, {}) == AgentSettings(
            path=path,
            state=Path("/var/lib/argus-sched/state.db"),
            packs=(str(ROOT / "config/checks/*.yaml"),),
        )

    def test_every_setting_that_is_off_is_good_when_it_is_taken_in(self, write: Write) -> None:
        taken_in = re.sub(r"^#(?=[^ ]|  )", "", self.TEXT, flags=re.MULTILINE)
        settings = load_settings(write(taken_in), self.ENVIRON)
        assert settings.telegram is not None
        assert None not in (
            settings.textfile,
            settings.heartbeat_url,
            settings.webhook,
            settings.alertmanager,
        )
        assert settings.maintenance[0].reason == "weekly deployment"
        assert settings.defaults.grace == timedelta(minutes=15)

    def test_it_names_every_key_there_is(self) -> None:
        keys = set(re.findall(r"^#?([a-z_]+):", self.TEXT, flags=re.MULTILINE))
        assert keys == set(AgentSettings.__dataclass_fields__) - {"path"}
