"""Containers on other machines: over ssh, TCP, TLS and contexts; and one machine that is gone or hangs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from argus_sched.agent.hosts import HostSpec, TlsFiles
from argus_sched.agent.logevents import EventKind, Record
from argus_sched.agent.packs import LogSpec
from argus_sched.agent.reading.loglines import parse
from argus_sched.agent.sources import open_source
from argus_sched.cli import main
from argus_sched.clock import SystemClock
from argus_sched.errors import HostError, SourceError
from tests.fakes.docker_daemon import FakeDocker, Trickle
from tests.fakes.front import Front, make_certificates, server_context
from tests.fakes.http_sink import HttpSink
from tests.fakes.ssh import FakeSsh
from tests.integration.docker_host import DockerHost

RUN = (
    'INFO:apscheduler.executors.default:Running job "{} (trigger: interval[0:05:00],'
    ' next run at: 2026-03-14 09:05:00 UTC)" (scheduled at 2026-03-14 09:00:00+00:00)'
)
SECONDS = 30.0


@pytest.fixture
def docker() -> Iterator[FakeDocker]:
    """A daemon with one container that ran a job a minute ago."""
    with FakeDocker() as daemon:
        web = daemon.add("web")
        web.log(RUN.format("sync"), datetime.now(UTC) - timedelta(minutes=1))
        yield daemon


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority of the test's own, and what it signed."""
    folder = tmp_path_factory.mktemp("tls")
    make_certificates(folder)
    return folder


@pytest.fixture
def ssh(docker: FakeDocker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSsh:
    """The program that stands in for ssh, on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return FakeSsh(folder, docker.socket)


def runs(host: HostSpec, timeout: float = SECONDS, container: str = "web") -> list[str | None]:
    """The jobs that the container's log says have run; raises SourceError with what was wrong."""
    clock = SystemClock()
    source = open_source(LogSpec(container=container), clock=clock, timeout=timeout, host=host)
    records: list[Record] = []
    try:
        (found,) = source.containers()
        reading = source.read(found, None, clock.now() - timedelta(days=9000), records.extend)
    finally:
        source.close()
    if reading.problem:
        raise SourceError(reading.problem)
    return [event.name for event in parse(records) if event.kind is EventKind.RUNNING]


# --- tcp and TLS


def trusted(folder: Path, name: str = "client") -> TlsFiles:
    return TlsFiles(*(str(folder / file) for file in ("ca.pem", f"{name}.pem", f"{name}-key.pem")))


def test_a_daemon_over_tcp_is_read_through_the_api(docker: FakeDocker) -> None:
    with Front(docker.socket) as front:
        assert runs(HostSpec("beta", front.host)) == ["sync"]


def test_a_daemon_over_tls_is_read_with_a_certificate_of_ours_whatever_the_web_trusts(
    docker: FakeDocker, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_certificates(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    with Front(docker.socket, server_context(certificates)) as front:
        assert runs(HostSpec("beta", front.host, trusted(certificates))) == ["sync"]


def test_a_daemon_that_another_authority_vouches_for_is_not_believed(
    docker: FakeDocker, certificates: Path, tmp_path: Path
) -> None:
    make_certificates(tmp_path)
    with (
        Front(docker.socket, server_context(tmp_path)) as front,
        pytest.raises(HostError, match="certificate verify failed"),
    ):
        runs(HostSpec("beta", front.host, trusted(certificates)))


def test_a_certificate_file_that_is_missing_is_named(docker: FakeDocker, certificates: Path) -> None:
    ours = trusted(certificates, "nobody")
    with (
        Front(docker.socket, server_context(certificates)) as front,
        pytest.raises(SourceError, match=r"cannot read .*nobody\.pem"),
    ):
        runs(HostSpec("beta", front.host, ours))


def test_an_answer_over_tls_that_trickles_ends_at_the_deadline(
    docker: FakeDocker, certificates: Path
) -> None:
    docker.containers["web"].faults.append(Trickle(0.2))
    with (
        Front(docker.socket, server_context(certificates)) as front,
        pytest.raises(SourceError, match="within 2 s"),
    ):
        runs(HostSpec("beta", front.host, trusted(certificates)), timeout=2.0)


# --- ssh


def test_a_daemon_behind_ssh_is_read_by_a_login_that_asks_nobody(ssh: FakeSsh) -> None:
    assert runs(HostSpec("alpha", "ssh://argus@alpha.example:2222")) == ["sync"]
    assert ssh.calls
    for call in ssh.calls:
        assert {"-oBatchMode=yes", "-oConnectTimeout=30", "-oControlMaster=auto"} <= set(call)
        assert call[call.index("-l") :] == [
            *("-l", "argus", "-p", "2222", "--", "alpha.example", "docker", "system", "dial-stdio")
        ]


def test_what_ssh_complains_of_is_told(ssh: FakeSsh) -> None:
    ssh.refuse("argus@alpha.example: Permission denied (publickey).\n")
    with pytest.raises(HostError) as caught:
        runs(HostSpec("alpha", "ssh://argus@alpha.example"))
    assert str(caught.value) == (
        "the docker daemon at ssh://argus@alpha.example cannot be reached: "
        "argus@alpha.example: Permission denied (publickey)."
    )


def test_an_ssh_that_gets_nowhere_is_given_up_and_leaves_no_process(ssh: FakeSsh) -> None:
    ssh.hang()
    with pytest.raises(HostError, match="did not answer within 1 s"):
        runs(HostSpec("alpha", "ssh://alpha.example"), timeout=1.0)
    assert ssh.calls
    assert children() == []


def test_a_machine_without_ssh_says_so(
    docker: FakeDocker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="ssh is not installed here: install OpenSSH's client"):
        runs(HostSpec("alpha", "ssh://alpha.example"))


def children() -> list[str]:
    """The commands of the ssh that this process started and that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                found.append((stat.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return [command for command in found if "dial-stdio" in command]


# --- contexts


def test_a_context_brings_its_url_and_its_certificates(
    docker: FakeDocker, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = hashlib.sha256(b"gamma").hexdigest()
    meta, tls = (tmp_path / "contexts" / kind / number for kind in ("meta", "tls"))
    meta.mkdir(parents=True)
    (tls / "docker").mkdir(parents=True)
    for ours, theirs in (("ca", "ca"), ("client", "cert"), ("client-key", "key")):
        shutil.copy(certificates / f"{ours}.pem", tls / "docker" / f"{theirs}.pem")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with Front(docker.socket, server_context(certificates)) as front:
        endpoint = {"Host": front.host, "SkipTLSVerify": False}
        (meta / "meta.json").write_text(json.dumps({"Name": "gamma", "Endpoints": {"docker": endpoint}}))
        assert runs(HostSpec("gamma", context="gamma")) == ["sync"]


# --- a whole pass


@dataclass
class Site:
    """An agent with packs on several hosts."""

    folder: Path
    hosts: dict[str, str] = field(default_factory=dict)
    webhook: str = ""

    def pack(self, app: str, host: str, database: str = "") -> None:
        """Watch `web` on a host, and a lock where there is a database."""
        (self.folder / f"{app}.yaml").write_text(
            f"app: {app}\nlogs: {{docker: {{container: web, host: {host}}}}}\n"
            + (f"database: {{dsn_env: {database}}}\n" if database else "")
            + "checks:\n"
            + ("  - {kind: scheduler_lock, key: 911000001}\n" if database else "")
            + "  - {kind: scheduler_jobs, jobs: [{id: sync, name: sync, every: 15m}]}\n"
        )

    def configure(self) -> str:
        """Write the settings; returns their path."""
        lines = "".join(f"  {name}: {{docker: '{url}'}}\n" for name, url in self.hosts.items())
        config = self.folder / "argus.config"
        config.write_text(
            f"state: {self.folder}/state.db\npacks: ['*.yaml']\nread_timeout: 5s\ndeadline: 30s\nhosts:\n{lines}"
            + (f"webhook: {{url: '{self.webhook}'}}\n" if self.webhook else "")
        )
        return str(config)

    def check(self, **environ: str) -> tuple[int, dict[str, Any], str]:
        """One pass: its exit code, its JSON and what it complained of."""
        command = [sys.executable, "-m", "argus_sched", "check", "--config", self.configure()]
        done = subprocess.run(
            [*command, "--output", "json"],
            capture_output=True,
            text=True,
            env={**os.environ, **environ},
            timeout=120,
            check=False,
        )
        return done.returncode, json.loads(done.stdout), done.stderr


@pytest.fixture
def site(tmp_path: Path) -> Site:
    folder = tmp_path / "site"
    folder.mkdir()
    return Site(folder)


def test_a_host_that_hangs_delays_no_other_and_is_waited_for_once(docker: FakeDocker, site: Site) -> None:
    """Forty packs on it would keep every reader busy for minutes, if each had to find out for itself."""
    with Front(docker.socket) as good, Front(docker.socket, silent=True) as hanging:
        site.hosts = {"good": good.host, "hanging": hanging.host}
        for number in range(40):
            site.pack(f"a{number:02}", "hanging")
        for number in range(3):
            site.pack(f"b{number}", "good")
        code, document, err = site.check()
        knocks = hanging.connections
    assert (code, err) == (3, "")
    assert document["complete"]
    phases = {result["target"]: result["phase"] for result in document["results"]}
    assert {target for target, phase in phases.items() if phase == "fresh"} == {
        f"b{n}/sync" for n in range(3)
    }
    down = {(node["app"], node["source"]) for node in document["sources"] if not node["up"]}
    assert down == {("", "host:hanging"), *((f"a{n:02}", "docker:web") for n in range(40))}
    assert {"app": "", "source": "host:good", "parent": None, "up": True, "problem": ""} in document[
        "sources"
    ]
    assert knocks <= 16


def test_a_host_that_is_gone_with_its_database_is_one_line(docker: FakeDocker, site: Site) -> None:
    # The machine's name leads nowhere: neither its daemon nor its database answers.
    site.hosts = {"alpha": "tcp://nowhere.invalid:2376", "good": docker.host}
    site.pack("labs", "alpha", "LABS_URL")
    site.pack("shop", "alpha", "SHOP_URL")
    site.pack("crm", "good")
    urls = {name: f"postgresql://u:secret@nowhere.invalid/{name}" for name in ("LABS_URL", "SHOP_URL")}
    code, document, _ = site.check(**urls)
    assert code == 3
    down = {(node["app"], node["source"], node["parent"]) for node in document["sources"] if not node["up"]}
    assert down == {
        ("", "host:alpha", None),
        *(
            (app, source, "host:alpha")
            for app in ("labs", "shop")
            for source in ("docker:web", f"database:{app}")
        ),
    }
    assert "secret" not in json.dumps(document)


@pytest.mark.slow
def test_a_host_that_goes_and_comes_back_is_one_message_and_one_recovery(
    docker: FakeDocker, site: Site
) -> None:
    with HttpSink() as sink:
        site.webhook = f"http://{sink.host}/hook"
        with Front(docker.socket) as front:
            site.hosts = {"alpha": front.host}
            for number in range(20):
                site.pack(f"a{number:02}", "alpha")
            assert site.check()[0] == 0
            front.silent = True
            for _ in range(2):
                assert site.check()[0] == 3
            front.silent = False
            for _ in range(2):
                assert site.check()[0] == 0
    notices = [notice for one in sink.taken for notice in one.body["notices"]]
    assert [(notice["target"], notice["status"]) for notice in notices] == [
        ("host:alpha", "UNKNOWN"),
        ("host:alpha", "OK"),
    ]
    assert "hides 20 checks" in notices[0]["summary"]


def test_events_and_discover_read_a_host_of_the_config(
    docker: FakeDocker, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.hosts = {"alpha": docker.host}
    site.pack("labs", "alpha")
    config = site.configure()
    assert main(["events", "--config", config, "--pack", str(site.folder / "labs.yaml")]) == 0
    assert {json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()} == {"sync"}
    # One run is too few to tell a trigger by, which is what its exit code says.
    assert main(["discover", "--config", config, "--host", "alpha", "--container", "web"]) == 3
    assert "docker: {container: web, host: alpha}" in capsys.readouterr().out.replace('"', "")
    assert main(["discover", "--config", config, "--host", "beta", "--container", "web"]) == 3
    assert "no host 'beta' in the config: it has local, alpha" in capsys.readouterr().err


# --- the real things


@dataclass
class Sshd:
    """A real sshd for root, by a key of its own, that runs docker against the test's daemon."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]


@pytest.fixture
def sshd(docker_host: DockerHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    if shutil.which("sshd", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("sshd is not installed (Debian package openssh-server)")
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    (tmp_path / "authorized").write_text((tmp_path / "user.pub").read_text())
    port = free_port()
    (tmp_path / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/authorized\n"
        f"PidFile none\nStrictModes no\nPermitRootLogin prohibit-password\nUsePAM no\n"
        f"SetEnv DOCKER_HOST={docker_host.host}\n"
    )
    public = (tmp_path / "host.pub").read_text()
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {public}")
    (tmp_path / "ssh_config").write_text(
        f"Host *\n  IdentityFile {tmp_path}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {tmp_path}/known\n"
    )
    log = (tmp_path / "sshd.log").open("wb")
    process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", tmp_path / "sshd_config"], stderr=log)
    folder = tmp_path / "wrapped"
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {tmp_path}/ssh_config "$@"\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    wait_for_port(port)
    yield Sshd(tmp_path, port, process)
    process.terminate()
    process.wait()
    log.close()


@pytest.mark.docker
def test_a_real_daemon_behind_a_real_sshd_is_read_by_one_login(docker_host: DockerHost, sshd: Sshd) -> None:
    docker_host.run_python("behind-ssh", f"import sys; print({RUN.format('far')!r}, file=sys.stderr)")
    docker_host.wait_for_exit("behind-ssh")
    host = HostSpec("alpha", f"ssh://root@127.0.0.1:{sshd.port}")
    assert runs(host, container="behind-ssh") == ["far"]
    assert (sshd.folder / "sshd.log").read_text().count("Accepted publickey") == 1
    assert children() == []
    (sshd.folder / "authorized").write_text("")
    with pytest.raises(HostError, match=r"cannot be reached: .*Permission denied \(publickey"):
        runs(host, container="behind-ssh")
    (sshd.folder / "known").write_text("")
    with pytest.raises(HostError, match="Host key verification failed"):
        runs(host, container="behind-ssh")


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for_port(port: int) -> None:
    import socket

    ends = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)
