"""Check packs: what a good one means, and the exact line for each thing that can be wrong in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from argus_sched import due_times
from argus_sched.agent.config.pack_files import inspect_pack, load_pack, load_packs, problems, read_packs
from argus_sched.agent.config.settings import AgentSettings
from argus_sched.agent.packs import DatabaseSpec, JobsCheck, JobSpec, LockCheck, LogSpec, Pack, PackDefaults
from argus_sched.errors import SettingsError

ROOT = Path(__file__).parents[4]
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

HEAD = """\
app: labs
logs: {docker: {container: labs-backend}}
database: {dsn_env: LABS_DATABASE_URL}
checks:
"""
LOCK = "  - {kind: scheduler_lock, key: 911000001}\n"
JOBS = "  - kind: scheduler_jobs\n    jobs:\n"
JOB = '      - {id: a, name: "A", every: 15m}\n'

Write = Callable[[str | bytes], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes one pack and returns its path."""

    def write(content: str | bytes) -> str:
        path = tmp_path / "pack.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def complaints(path: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """What is wrong in the file, without its folder."""
    return [str(problem).replace(path, "pack.yaml") for problem in problems(path, environ or {})]


def only_job(pack: Pack) -> JobSpec:
    (check,) = pack.checks
    assert isinstance(check, JobsCheck)
    (job,) = check.jobs
    return job


class TestAGoodPack:
    def test_every_key_of_the_format_arrives_in_its_value(self, write: Write, tmp_path: Path) -> None:
        path = write(
            """\
app: labs
logs:
  docker: {compose_project: labs, compose_service: backend}
  window: 48h
databases:
  - {dsn_env: LABS_DATABASE_URL}
  - {dsn_file: secrets/replica}
checks:
  - {kind: scheduler_lock, id: lock, key: -5, tick: 0.5s, holder_name: scheduler-leader, takeover: 10s}
  - kind: scheduler_jobs
    id: nightly_jobs
    jobs:
      - {id: a, name: "A → B", cron: "0 6 * * *", timezone: Europe/Stockholm, grace: 1h, max_run: 30m}
      - {id: b, name: "B", every: 1h30m, enabled: false, inferred: true}
"""
        )
        assert load_pack(path, {}) == Pack(
            app="labs",
            path=path,
            logs=LogSpec(compose_project="labs", compose_service="backend", window=48 * HOUR),
            databases=(
                DatabaseSpec("LABS_DATABASE_URL"),
                DatabaseSpec(None, str(tmp_path / "secrets/replica")),
            ),
            checks=(
                LockCheck("lock", -5, timedelta(seconds=10), timedelta(seconds=0.5), "scheduler-leader"),
                JobsCheck(
                    "nightly_jobs",
                    (
                        JobSpec(
                            id="a",
                            name="A → B",
                            trigger=due_times.cron("0 6 * * *", "Europe/Stockholm"),
                            grace=HOUR,
                            interval=DAY,
                            max_run=30 * MINUTE,
                            line=13,
                        ),
                        JobSpec(
                            id="b",
                            name="B",
                            trigger=due_times.every(minutes=90),
                            grace=90 * MINUTE,
                            interval=90 * MINUTE,
                            enabled=False,
                            inferred=True,
                            line=14,
                        ),
                    ),
                ),
            ),
        )

    def test_checks_have_ids_of_their_own_without_being_given_any(self, write: Write) -> None:
        pack = load_pack(write(HEAD + LOCK + JOBS + JOB), {})
        assert [check.id for check in pack.checks] == ["scheduler_lock", "scheduler_jobs"]

    @pytest.mark.parametrize(
        ("docker", "spec"),
        [
            ("{container: x}", LogSpec(container="x")),
            ('{label: "app=x"}', LogSpec(label="app=x")),
            ("{compose_project: x}", LogSpec(compose_project="x")),
        ],
    )
    def test_one_selector_names_the_containers(self, write: Write, docker: str, spec: LogSpec) -> None:
        content = HEAD.replace("{container: labs-backend}", docker) + LOCK
        assert load_pack(write(content), {}).logs == spec

    def test_a_file_is_found_beside_its_pack(self, write: Write, tmp_path: Path) -> None:
        content = HEAD.replace(
            "docker: {container: labs-backend}", "file: {path: logs/b.log, format: json-file}"
        )
        assert load_pack(write(content + LOCK), {}).logs == LogSpec(
            path=str(tmp_path / "logs/b.log"), format="json-file"
        )

    def test_what_the_pack_leaves_out_is_taken_from_the_defaults(self, write: Write) -> None:
        defaults = PackDefaults(2 * HOUR, "Europe/Stockholm", 50 * HOUR, timedelta(seconds=9))
        content = HEAD + LOCK + JOBS + '      - {id: a, name: "A", cron: "0 6 * * *"}\n'
        pack = load_pack(write(content), {}, defaults)
        lock, jobs = pack.checks
        assert isinstance(lock, LockCheck)
        assert isinstance(jobs, JobsCheck)
        assert pack.logs is not None
        assert (pack.logs.window, lock.takeover) == (50 * HOUR, timedelta(seconds=9))
        assert (jobs.jobs[0].grace, jobs.jobs[0].trigger) == (
            2 * HOUR,
            due_times.cron("0 6 * * *", "Europe/Stockholm"),
        )

    @pytest.mark.parametrize(
        ("trigger", "interval", "grace"),
        [
            ("every: 1m", MINUTE, 10 * MINUTE),
            ("every: 15m", 15 * MINUTE, 15 * MINUTE),
            ('cron: "*/5 * * * *"', 5 * MINUTE, 10 * MINUTE),
            ('cron: "0 6 * * *"', DAY, DAY),
            ('cron: "0 9 * * mon-fri"', 3 * DAY, 3 * DAY),
        ],
    )
    def test_grace_is_one_interval_and_at_least_ten_minutes(
        self, write: Write, trigger: str, interval: timedelta, grace: timedelta
    ) -> None:
        path = write(HEAD + JOBS + f'      - {{id: a, name: "A", {trigger}}}\n')
        pack, _ = inspect_pack(path, {}, PackDefaults(), now=datetime(2026, 3, 11, tzinfo=UTC))
        assert pack is not None
        assert (only_job(pack).interval, only_job(pack).grace) == (interval, grace)

    @pytest.mark.parametrize(
        ("value", "enabled"),
        [
            ("true", True),
            ("True", True),
            ("1", True),
            ("", True),
            ("false", False),
            ("0", False),
            ("no", False),
        ],
    )
    def test_a_switch_of_the_environment_decides_whether_a_job_exists(
        self, write: Write, value: str, enabled: bool
    ) -> None:
        job = '      - {id: a, name: "A", every: "${MINUTES:-5}m", enabled: "${MONITORING_ENABLED:-true}"}\n'
        found = only_job(load_pack(write(HEAD + JOBS + job), {"MONITORING_ENABLED": value}))
        assert (found.enabled, found.interval) == (enabled, 5 * MINUTE)

    @pytest.mark.parametrize("key", [-(2**63), -1, 0, 2**32 + 5, 2**63 - 1])
    def test_a_lock_may_have_any_bigint(self, write: Write, key: int) -> None:
        (check,) = load_pack(write(HEAD + f"  - {{kind: scheduler_lock, key: {key}}}\n"), {}).checks
        assert isinstance(check, LockCheck)
        assert check.key == key

    def test_anchors_are_the_same_value_twice(self, write: Write) -> None:
        job = '      - {id: a, name: "A", every: &often 7m, grace: *often}\n'
        assert only_job(load_pack(write(HEAD + JOBS + job), {})).grace == 7 * MINUTE

    def test_a_window_shorter_than_a_limit_is_a_warning_with_its_place(self, write: Write) -> None:
        path = write(HEAD + JOBS + '      - {id: a, name: "A", every: 1d}\n')
        assert load_pack(path, {}).warnings == (
            f"{path}:7: checks[0].jobs[0]: logs.window 26h is shorter than the limit of a: make it 2d",
        )

    def test_a_zone_without_cron_is_a_warning(self, write: Write) -> None:
        path = write(HEAD + JOBS + '      - {id: a, name: "A", every: 1h, timezone: UTC}\n')
        assert load_pack(path, {}).warnings == (
            f"{path}:7: checks[0].jobs[0].timezone: has no effect without cron",
        )


WRONG_JOBS = [
    ('{id: a, name: "A", evry: 15m}', "", "needs every or cron"),
    ('{id: a, name: "A", every: 1m, cron: "* * * * *"}', ".cron", "is given beside every: keep one of them"),
    ('{name: "A", every: 1m}', ".id", "is missing"),
    ("{id: a, every: 1m}", ".name", "is missing"),
    ('{id: a, name: " ", every: 1m}', ".name", "must not be empty"),
    ("{id: a, name: yes, every: 1m}", ".name", "expected text, got the boolean yes: put it in quotes"),
    ("{id: a, name: 010, every: 1m}", ".name", "expected text, got the number 010: put it in quotes"),
    (
        "{id: a, name: 2026-03-14, every: 1m}",
        ".name",
        "expected text, got the date 2026-03-14: put it in quotes",
    ),
    ("{id: a, name: , every: 1m}", ".name", "expected text, got nothing"),
    ("{id: a, name: [A], every: 1m}", ".name", "expected text, got a list"),
    (
        '{id: a, name: "\\e[31mA\\e[0m", every: 1m}',
        ".name",
        "must hold no escape sequence: colours are taken out of the log's lines, so leave them out here",
    ),
    ('{id: "a\\tb", name: "A", every: 1m}', ".id", "must hold no control characters, got 'a\\tb'"),
    (
        '{id: a, name: "A", every: 90}',
        ".every",
        "expected a duration such as 90s, 15m, 26h or 1d, got the number 90",
    ),
    (
        '{id: a, name: "A", every: 1:30}',
        ".every",
        "expected a duration such as 90s, 15m, 26h or 1d, got the number 1:30",
    ),
    (
        '{id: a, name: "A", every: 5x}',
        ".every",
        "expected a duration such as 90s, 15m, 26h, 1d or 1h30m, got '5x'",
    ),
    (
        '{id: a, name: "A", every: -5m}',
        ".every",
        "expected a duration such as 90s, 15m, 26h, 1d or 1h30m, got '-5m'",
    ),
    ('{id: a, name: "A", every: 0s}', ".every", "a duration must be above zero, got '0s'"),
    ('{id: a, name: "A", every: 1m, grace: 0s}', ".grace", "a duration must be above zero, got '0s'"),
    (
        '{id: a, name: "A", every: 1m, enabled: yes}',
        ".enabled",
        "expected true or false, got the boolean yes",
    ),
    ('{id: a, name: "A", every: 1m, enabled: "true"}', ".enabled", "expected true or false, got 'true'"),
    (
        '{id: a, name: "A", every: "${NOPE}m"}',
        ".every",
        "the variable NOPE is not set: set it or write ${NOPE:-default}",
    ),
    (
        '{id: a, name: "A", every: !!binary 5m}',
        ".every",
        "has the unknown tag 'tag:yaml.org,2002:binary': remove it",
    ),
    ('{id: a, name: "A", every: !x 5m}', ".every", "has the unknown tag '!x': remove it"),
    ('{id: a, name: "A", every: 1m, every: 2m}', ".every", "is given twice, first in line 7"),
    (
        '{id: a, name: "A", cron: "0 6 * * *", timezone: Europe/Stokholm}',
        ".timezone",
        "time zone 'Europe/Stokholm' is not known here: use an IANA name such as Europe/Stockholm",
    ),
    (
        '{id: a, name: "A", cron: "0 0 31 2 *"}',
        ".cron",
        "cron '0 0 31 2 *' names a day that never comes: check day of month and month",
    ),
    ('{id: a, name: "A", every: 1m, max_runs: 5m}', ".max_runs", "unknown key, did you mean 'max_run'?"),
    (
        '{id: a, name: "A", every: 1m, colour: red}',
        ".colour",
        "unknown key; known here: id, name, timezone, every, cron, grace, max_run, enabled, inferred",
    ),
    ("12", "", "expected a mapping, got the number 12"),
]


@pytest.mark.parametrize(("job", "place", "message"), WRONG_JOBS)
def test_a_wrong_job_is_one_line_with_its_place(write: Write, job: str, place: str, message: str) -> None:
    path = write(HEAD + JOBS + f"      - {job}\n")
    assert f"pack.yaml:7: checks[0].jobs[0]{place}: {message}" in complaints(path)


@pytest.mark.parametrize(
    "database",
    [
        "database: postgresql://u:hunter2@h/d",
        "database: [postgresql://u:hunter2@h/d]",
        "database: {dsn: 'postgresql://u:hunter2@h/d'}",
        "database: {dsn_env: 'postgresql://u:hunter2@h/d'}",
        "database: {'postgresql://u:hunter2@h/d'}",
        "databases: postgresql://u:hunter2@h/d",
        "databases: [postgresql://u:hunter2@h/d]",
    ],
)
def test_no_message_holds_a_password_that_stands_where_a_name_belongs(write: Write, database: str) -> None:
    lines = complaints(write(f"app: labs\n{database}\nchecks:\n" + LOCK))
    assert lines
    assert not [line for line in lines if "hunter2" in line]


def test_a_path_that_no_file_can_have_is_named_at_its_place(write: Write) -> None:
    pack = HEAD.replace("docker: {container: labs-backend}", 'file: {path: "a\\0b"}') + LOCK
    line = "pack.yaml:2: logs.file.path: must hold no NUL character, which no path can have"
    assert complaints(write(pack)) == [line]


@pytest.mark.parametrize("cron", ["0 25 * * *", "0 6 * *", "every day", "@reboot", "0 0 0 6 * *"])
def test_a_bad_cron_is_named_at_its_place(write: Write, cron: str) -> None:
    (line,) = complaints(write(HEAD + JOBS + f'      - {{id: a, name: "A", cron: "{cron}"}}\n'))
    assert line.startswith(f"pack.yaml:7: checks[0].jobs[0].cron: cron '{cron}' ")


EMPTY = "pack.yaml:1: holds no settings, only comments or nothing: write some, or name another file"
WRONG_PACKS = [
    ("", [EMPTY]),
    ("# only a comment\n", [EMPTY]),
    ("- a\n", ["pack.yaml:1: expected a mapping of keys and values, got a list"]),
    ("labs", ["pack.yaml:1: expected a mapping of keys and values, got text"]),
    ("app: labs\n", ["pack.yaml:1: checks: needs at least one check"]),
    ("app: labs\nchecks: []\n", ["pack.yaml:2: checks: needs at least one check"]),
    ("app: labs\nchecks: 5\n", ["pack.yaml:2: checks: expected a list, got the number 5"]),
    (LOCK, ["pack.yaml:1: expected a mapping of keys and values, got a list"]),
    (
        HEAD.replace("labs\n", "la bs\n", 1) + LOCK,
        ["pack.yaml:1: app: must be up to 63 letters, digits, '-', '_' or '.', got 'la bs'"],
    ),
    (HEAD + "  - {key: 5}\n", ["pack.yaml:5: checks[0].kind: is missing"]),
    (
        HEAD + "  - {kind: scheduler_job}\n",
        ["pack.yaml:5: checks[0].kind: 'scheduler_job' is not known, did you mean 'scheduler_jobs'?"],
    ),
    (
        HEAD + "  - {kind: ping}\n",
        ["pack.yaml:5: checks[0].kind: 'ping' is not known; known here: scheduler_jobs, scheduler_lock"],
    ),
    (HEAD + "  - {kind: scheduler_lock}\n", ["pack.yaml:5: checks[0].key: is missing"]),
    (
        HEAD + LOCK.replace("911000001", "0x10"),
        ["pack.yaml:5: checks[0].key: expected a whole number in plain decimal, got the number 0x10"],
    ),
    (
        HEAD + LOCK.replace("911000001", "911_000_001"),
        ["pack.yaml:5: checks[0].key: expected a whole number in plain decimal, got the number 911_000_001"],
    ),
    (
        HEAD + LOCK.replace("911000001", '"911000001"'),
        ["pack.yaml:5: checks[0].key: expected a whole number in plain decimal, got '911000001'"],
    ),
    (
        HEAD + LOCK.replace("911000001", str(2**63)),
        ["pack.yaml:5: checks[0].key: is outside the range of a bigint: the number 9223372036854775808"],
    ),
    (HEAD + LOCK + LOCK, ["pack.yaml:6: checks[1].id: the id 'scheduler_lock' is taken since line 5"]),
    (
        HEAD + JOBS + JOB + JOBS + JOB.replace('a, name: "A"', 'b, name: "B"'),
        ["pack.yaml:8: checks[1].id: the id 'scheduler_jobs' is taken since line 5"],
    ),
    (
        HEAD + JOBS + JOB + JOB,
        [
            "pack.yaml:8: checks[0].jobs[1].id: the id 'a' is taken since line 7",
            "pack.yaml:8: checks[0].jobs[1].name: the name 'A' is taken since line 7",
        ],
    ),
    (
        HEAD + LOCK + JOBS + JOB.replace("id: a", "id: scheduler_lock"),
        ["pack.yaml:8: checks[1].jobs[0].id: the id 'scheduler_lock' is taken since line 5"],
    ),
    (HEAD + "  - kind: scheduler_jobs\n", ["pack.yaml:5: checks[0].jobs: needs at least one job"]),
    (
        "app: labs\nchecks:\n" + LOCK,
        ["pack.yaml:1: database: is missing: scheduler_lock looks into the application's database"],
    ),
    (
        "app: labs\nchecks:\n" + JOBS + JOB,
        ["pack.yaml:1: logs: is missing: scheduler_jobs reads the application's log"],
    ),
    (
        HEAD.replace("{dsn_env: LABS_DATABASE_URL}", '{dsn: "postgresql://u:hunter2@h/db"}') + LOCK,
        [
            "pack.yaml:3: database.dsn: a DSN must not stand in YAML: name its variable with dsn_env, or its file with dsn_file"
        ],
    ),
    (
        HEAD.replace("{dsn_env: LABS_DATABASE_URL}", '{dsn_env: "postgresql://u:hunter2@h/db"}') + LOCK,
        ["pack.yaml:3: database.dsn_env: must be the name of an environment variable, not its value"],
    ),
    (
        HEAD.replace("{dsn_env: LABS_DATABASE_URL}", "{}") + LOCK,
        ["pack.yaml:3: database: needs dsn_env or dsn_file"],
    ),
    (
        HEAD.replace("{dsn_env: LABS_DATABASE_URL}", "{dsn_env: A, dsn_file: b}") + LOCK,
        ["pack.yaml:3: database.dsn_file: is given beside dsn_env: keep one of them"],
    ),
    (
        HEAD.replace("{container: labs-backend}", "{compose_service: x}") + LOCK,
        ["pack.yaml:2: logs.docker.compose_service: needs compose_project beside it"],
    ),
    (
        HEAD.replace("{container: labs-backend}", "{container: x, label: y}") + LOCK,
        ["pack.yaml:2: logs.docker.label: is given beside container: keep one of them"],
    ),
    (
        HEAD.replace("{container: labs-backend}", "{container: x, host: alpha}") + LOCK,
        ["pack.yaml:2: logs.docker.host: 'alpha' is no host of the config; known here: local"],
    ),
    (
        HEAD.replace("docker: {container: labs-backend}", "journal: {unit: 'labs@*'}") + LOCK,
        [
            "pack.yaml:2: logs.journal.unit: expected the name of a systemd unit, such as labs.service, got 'labs@*'"
        ],
    ),
    (
        HEAD.replace("docker: {container: labs-backend}", "journal: {directory: x}") + LOCK,
        ["pack.yaml:2: logs.journal.unit: is missing"],
    ),
    (
        HEAD.replace("docker: {container: labs-backend}", "window: 1h") + LOCK,
        ["pack.yaml:2: logs: needs docker or file or journal"],
    ),
    (
        HEAD.replace("docker: {container: labs-backend}", "file: {path: x, format: jsonfile}") + LOCK,
        ["pack.yaml:2: logs.file.format: 'jsonfile' is not known, did you mean 'json-file'?"],
    ),
    (
        HEAD.replace("checks:", "chekcs:") + LOCK,
        [
            "pack.yaml:1: checks: needs at least one check",
            "pack.yaml:4: chekcs: unknown key, did you mean 'checks'?",
        ],
    ),
    (HEAD + LOCK + "app: again\n", ["pack.yaml:6: app: is given twice, first in line 1"]),
    (HEAD + LOCK + "? [a, b]\n: c\n", ["pack.yaml:6: a key must be one word"]),
    (
        HEAD + LOCK + "---\napp: two\n",
        [
            "pack.yaml:6: is not YAML: expected a single document in the stream that began in line 1, but found another document"
        ],
    ),
    (
        HEAD + LOCK + "logs: {docker\n",
        [
            "pack.yaml:7: is not YAML: while parsing a flow mapping that began in line 6, did not find expected ',' or '}'"
        ],
    ),
    (b"app: \xff\n", ["pack.yaml:1: is not UTF-8 here: save the file as UTF-8"]),
    (b"app: a\n# \x00\n", ["pack.yaml:2: is not YAML: control characters are not allowed"]),
    ("app: *nobody\n", ["pack.yaml:1: is not YAML: found undefined alias"]),
]


@pytest.mark.parametrize(("content", "lines"), WRONG_PACKS)
def test_a_wrong_pack_is_told_line_by_line(write: Write, content: str | bytes, lines: list[str]) -> None:
    assert complaints(write(content)) == lines


def test_all_problems_are_told_at_once_and_in_the_order_of_the_file(write: Write) -> None:
    path = write(
        "app: labs\nlogs: {docker: {container: x}}\nchecks:\n"
        + JOBS
        + "      - {id: a, name: A, every: 0s}\n      - {id: b, name: B, evry: 1m}\n      - {id: b, name: C, every: 1m}\n"
    )
    with pytest.raises(SettingsError) as caught:
        load_pack(path, {})
    assert str(caught.value).replace(path, "pack.yaml").splitlines() == [
        "pack.yaml:6: checks[0].jobs[0].every: a duration must be above zero, got '0s'",
        "pack.yaml:7: checks[0].jobs[1]: needs every or cron",
        "pack.yaml:7: checks[0].jobs[1].evry: unknown key, did you mean 'every'?",
        "pack.yaml:8: checks[0].jobs[2].id: the id 'b' is taken since line 7",
    ]
    assert caught.value.exit_code == 3


def test_a_file_that_is_not_there_is_a_problem_of_that_file(tmp_path: Path) -> None:
    assert complaints(str(tmp_path / "gone.yaml")) == [
        "pack.yaml:1: cannot be read: No such file or directory"
    ]
    assert complaints(str(tmp_path)) == ["pack.yaml:1: cannot be read: Is a directory"]


def test_an_alias_of_itself_ends_in_one_line(write: Write) -> None:
    found = [line for line in complaints(write("app: [&a [*a]]\n")) if "refers to itself" in line]
    assert found == [
        "pack.yaml:1: app" + "[0]" * 30 + ": is nested deeper than 30 levels, or refers to itself"
    ]


def test_aliases_that_multiply_end_in_one_line(write: Write) -> None:
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
    )
    found = [line for line in complaints(write(bomb)) if "unknown key" not in line]
    assert len([line for line in found if "is one value more than a file may hold" in line]) == 1


def test_what_a_variable_holds_is_in_no_message(write: Write) -> None:
    secret = "postgresql://u:hunter2@h/db"
    content = (
        HEAD
        + "  - {kind: scheduler_lock, key: '${S}', takeover: '${S}', id: a}\n"
        + JOBS
        + ("      - {id: x, name: X, cron: '${S}', timezone: '${S}', enabled: '${S}', grace: '${S}'}\n")
    )
    found = complaints(write(content), {"S": secret})
    assert len(found) == 6
    assert not [line for line in found if "hunter2" in line]
    assert (
        "pack.yaml:5: checks[0].takeover: expected a duration such as 90s, 15m, 26h, 1d or 1h30m, got '${S}'"
        in found
    )


class TestSeveralPacks:
    def test_packs_come_by_path_and_pattern_each_once(self, tmp_path: Path) -> None:
        for app in ("b", "a"):
            (tmp_path / f"{app}.yaml").write_text(HEAD.replace("labs\n", f"{app}\n", 1) + LOCK)
        names = (str(tmp_path / "b.yaml"), str(tmp_path / "*.yaml"))
        packs = load_packs(AgentSettings(None, tmp_path / "state.db", names), {})
        assert [pack.app for pack in packs] == ["b", "a"]

    def test_an_application_has_one_pack(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            (tmp_path / f"{name}.yaml").write_text(HEAD + LOCK)
        with pytest.raises(SettingsError) as caught:
            load_packs(AgentSettings(None, tmp_path / "state.db", (str(tmp_path / "*.yaml"),)), {})
        assert str(caught.value) == (
            f"{tmp_path}/two.yaml:1: app: the application 'labs' has a pack already: {tmp_path}/one.yaml"
        )

    def test_problems_of_all_packs_are_told_together(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            (tmp_path / f"{name}.yaml").write_text("app: labs\n")
        with pytest.raises(SettingsError) as caught:
            load_packs(AgentSettings(None, tmp_path / "state.db", (str(tmp_path / "*.yaml"),)), {})
        assert len(str(caught.value).splitlines()) == 2

    def test_a_wrong_file_is_told_beside_the_right_ones(self, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").write_text(HEAD + LOCK)
        (tmp_path / "b.yaml").write_text(HEAD + LOCK)
        (tmp_path / "c.yaml").write_text("app: shop\nlgos: {}\n")
        missing = tmp_path / "d.yaml"
        names = (str(tmp_path / "*.yaml"), str(missing))
        files = read_packs(AgentSettings(None, tmp_path / "state.db", names), {})
        assert [file.pack.app if file.pack else None for file in files] == ["labs", None, None, None]
        assert files[0].problem == ""
        assert files[1].problem == (
            "nothing of it is watched: line 1: app: the application 'labs' has a pack already: "
            f"{tmp_path}/a.yaml"
        )
        assert "line 2: lgos: unknown key, did you mean 'logs'?" in files[2].problem
        assert (files[3].node, "cannot be read" in files[3].problem) == (f"pack:{missing}", True)

    def test_no_pack_at_all_is_an_error_and_never_ok(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match="no check pack matches"):
            load_packs(AgentSettings(None, tmp_path / "state.db", (str(tmp_path / "*.yaml"),)), {})


class TestShippedPacks:
    @pytest.mark.parametrize("path", sorted((ROOT / "checks").glob("*.yaml")), ids=lambda path: path.name)
    def test_a_shipped_pack_is_good_without_any_variable_and_warns_of_nothing(self, path: Path) -> None:
        assert load_pack(str(path), {}).warnings == ()

    def test_labs_watches_the_22_jobs_of_the_reference_application_to_the_letter(self) -> None:
        handed = yaml.safe_load((ROOT / "tests/field/labs-jobs.yaml").read_text())["jobs"]
        pack = yaml.safe_load((ROOT / "checks/labs.yaml").read_text())
        (jobs,) = [check["jobs"] for check in pack["checks"] if check["kind"] == "scheduler_jobs"]
        keys = ("id", "name", "every", "cron")
        assert len(jobs) == 22
        assert sorted([job.get(key, "") for key in keys] for job in jobs) == sorted(
            [job.get(key, "") for key in keys] for job in handed
        )

    def test_labs_switches_and_graces_are_those_of_the_reference_application(self) -> None:
        pack = load_pack(
            str(ROOT / "checks/labs.yaml"), {"SCRIBE_WARM_ENABLED": "false", "MONITORING_ENABLED": "0"}
        )
        lock, jobs = pack.checks
        assert isinstance(jobs, JobsCheck)
        assert lock == LockCheck("scheduler_lock", 911_000_001)
        assert {job.id for job in jobs.jobs if not job.enabled} == {"monitoring_checks", "scribe_report_warm"}
        assert {job.grace for job in jobs.jobs if isinstance(job.trigger, due_times.Cron)} == {HOUR}
        assert pack.logs == LogSpec(container="labs-backend", window=26 * HOUR)
        assert pack.databases == (DatabaseSpec("LABS_DATABASE_URL"),)

    def test_the_readme_shows_a_pack_that_is_good(self, write: Write) -> None:
        example = (ROOT / "checks/README.md").read_text().split("```yaml\n")[1].split("```")[0]
        assert load_pack(write(example), {}).warnings == ()
