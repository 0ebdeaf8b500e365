"""The sandbox of a process, with real processes and real namespaces: mounts, processes, user, capabilities."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mooring.kit.loop import run_real
from mooring.kubelet.processes.sandboxes import HOST, Sandboxes
from mooring.kubelet.processes.security_context import PodUsers, id_map
from mooring.kubelet.processes.shim.client import Sandbox, ShimConfig, ShimMount, ShimProcess, ShimReport
from mooring.kubelet.processes.shim.sandbox import NONE, ROOT, USER_NAMESPACE
from tests.kubelet.processes.shim.test_program import is_alive, played, text_of, wait_gone

PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
OWN: dict[str, Any] = {"user": os.getuid(), "group": os.getgid()}


def own_level(folder: Path) -> tuple[str, bool]:
    """The rights of the user that runs the tests."""

    async def main() -> tuple[str, bool]:
        sandboxes = await Sandboxes.open(HOST, folder)
        sandboxes.close()
        return sandboxes.ability.level, sandboxes.ability.has_pid_namespaces

    return run_real(main())


@dataclass(frozen=True)
class Ended:
    code: int | None
    output: str
    failure: str
    command: ShimReport | None = None


def ran(folder: Path, argv: Sequence[str], sandbox: Sandbox, then: Sequence[str] = ()) -> Ended:
    """The end of a process in a sandbox. With `then`, of a command beside it, after which it is killed."""
    found: list[Ended] = []

    async def story() -> None:
        log = folder / "log"
        shim = await ShimProcess.start(ShimConfig(argv, PATH, str(log), str(folder / "record"), sandbox=sandbox))
        command = None
        try:
            async for report in shim.reports():
                if report.running and then:
                    shim.run(1, then, 60.0)
                if report.ran is not None:
                    command = report
                    shim.kill()
                elif not report.running:
                    lines = (line.split(" ", 3)[3] for line in log.read_text().splitlines())
                    found.append(Ended(report.exited, "\n".join(lines), report.failed, command))
        finally:
            await shim.close()

    played(story)
    (folder / "log").unlink()
    (ended,) = found
    return ended


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume/file").write_text("hello\n")
    return tmp_path / "volume"


# Becoming the command


def test_a_command_is_run_with_its_arguments_and_its_code(tmp_path: Path) -> None:
    sandbox = Sandbox(directory=str(tmp_path), **OWN)
    assert ran(tmp_path, ["sh", "-c", 'echo "$0 $1"; pwd; exit 7', "a", "b c"], sandbox) == Ended(
        7, f"a b c\n{tmp_path}", ""
    )


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        pytest.param("nowhere", 'exec: "nowhere": executable file not found in $PATH', id="not in the path"),
        pytest.param("/no/where", 'exec: "/no/where": stat /no/where: no such file or directory', id="not there"),
        pytest.param("/etc/passwd", 'exec: "/etc/passwd": permission denied', id="not executable"),
        pytest.param("/etc", 'exec: "/etc": is a directory', id="a directory"),
    ],
)
def test_why_it_cannot_run_is_reported(tmp_path: Path, command: str, wanted: str) -> None:
    assert ran(tmp_path, [command], Sandbox(**OWN)).failure == wanted


def test_a_file_without_a_known_form_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "odd").write_text("no shebang")
    (tmp_path / "odd").chmod(0o755)
    (tmp_path / "lost").write_text("#!/no/where\n")
    (tmp_path / "lost").chmod(0o755)

    assert ran(tmp_path, [str(tmp_path / "odd")], Sandbox(**OWN)).failure == f"exec {tmp_path}/odd: exec format error"
    lost = ran(tmp_path, [str(tmp_path / "lost")], Sandbox(**OWN)).failure
    assert lost == f'exec: "{tmp_path}/lost": its interpreter does not exist'


def test_a_broken_pipe_kills_the_command_as_usual(tmp_path: Path) -> None:
    # Python ignores SIGPIPE; who inherited that would go on writing.
    assert ran(tmp_path, ["sh", "-c", "kill -PIPE $$; exit 3"], Sandbox(**OWN)).code == 128 + signal.SIGPIPE


def test_a_directory_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    failure = 'chdir to cwd ("/no/where") failed: no such file or directory'
    assert ran(tmp_path, ["pwd"], Sandbox(directory="/no/where", **OWN)).failure == failure


# Mounts


def sandboxes_of(folder: Path, mounts: Sequence[ShimMount] = (), directory: str = "/") -> list[Sandbox]:
    """All ways to mount with the rights of this user; root has two."""
    level, has_pids = own_level(folder)
    levels = [ROOT, USER_NAMESPACE] if level == ROOT else [level] if level != NONE else []
    return [Sandbox(each, directory, list(mounts), has_pids, **OWN) for each in levels]


@pytest.mark.parametrize("target", ["/.mooring-data/x/y", "/etc/.mooring-data", "/var/run/.mooring/x"])
def test_a_volume_is_seen_where_nothing_was(tmp_path: Path, volume: Path, target: str) -> None:
    argv = ["sh", "-c", f"cat {target}/file && echo new > {target}/new && ls -d /usr /etc/passwd /dev/null"]
    for sandbox in sandboxes_of(tmp_path, [ShimMount(str(volume), target)]):
        assert ran(tmp_path, argv, sandbox) == Ended(0, "hello\n/dev/null\n/etc/passwd\n/usr", "")
        assert (volume / "new").read_text() == "new\n"
        assert not Path(target).exists(), "it is seen by others"


@pytest.mark.parametrize(
    ("targets", "script", "wanted"),
    [
        pytest.param({"/tmp": ("volume", False)}, "ls /tmp", "file", id="it hides what was there"),
        pytest.param(
            {"/tmp": ("volume", False), "/tmp/inside/deep": ("other", False)},
            "find /tmp | sort",
            "/tmp\n/tmp/file\n/tmp/inside\n/tmp/inside/deep",
            id="sources below a volume are seen",
        ),
        pytest.param(
            {"/.mooring-data": ("volume", True)},
            "touch /.mooring-data/x 2>/dev/null || cat /.mooring-data/file",
            "hello",
            id="read-only",
        ),
        pytest.param({"/etc/.mooring/one": ("volume/file", False)}, "cat /etc/.mooring/one", "hello", id="a file"),
    ],
)
def test_what_a_mount_shows(
    tmp_path: Path, volume: Path, targets: dict[str, tuple[str, bool]], script: str, wanted: str
) -> None:
    (tmp_path / "other").mkdir()
    mounts = [ShimMount(str(tmp_path / source), target, is_ro) for target, (source, is_ro) in targets.items()]
    for sandbox in sandboxes_of(tmp_path, mounts):
        assert ran(tmp_path, ["sh", "-c", script], sandbox) == Ended(0, wanted, "")


def test_a_file_does_not_fit_over_a_directory(tmp_path: Path, volume: Path) -> None:
    for sandbox in sandboxes_of(tmp_path, [ShimMount(str(volume / "file"), "/etc")]):
        failure = ran(tmp_path, ["true"], sandbox).failure
        assert failure == "/etc is a directory here, and a file cannot be mounted over it"


def test_a_source_behind_a_link_is_not_mounted(tmp_path: Path, volume: Path) -> None:
    """Whoever can write a directory could lead the mount anywhere."""
    (tmp_path / "link").symlink_to(volume)
    for sandbox in sandboxes_of(tmp_path, [ShimMount(str(tmp_path / "link"), "/mnt")]):
        assert "Too many levels of symbolic links" in ran(tmp_path, ["true"], sandbox).failure


def test_a_missing_directory_is_created_where_only_the_command_sees_it(tmp_path: Path) -> None:
    for sandbox in sandboxes_of(tmp_path, directory="/.mooring-work/here"):
        assert ran(tmp_path, ["pwd"], sandbox) == Ended(0, "/.mooring-work/here", "")
        assert not Path("/.mooring-work").exists()


def test_a_read_only_root_leaves_volumes_writable(tmp_path: Path, volume: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o777)
    script = f"touch {tmp_path}/open/x /mnt/../usr/x 2>&1 | grep -c Read-only; touch /.data/y && ls /.data"
    for sandbox in sandboxes_of(tmp_path, [ShimMount(str(volume), "/.data")]):
        read_only = Sandbox(
            sandbox.level, "/", sandbox.mounts, sandbox.has_pid_namespace, is_root_read_only=True, **OWN
        )
        assert ran(tmp_path, ["sh", "-c", script], read_only).output == "2\nfile\ny"


def test_a_read_only_root_includes_mounts_that_its_user_cannot_reach(tmp_path: Path, volume: Path) -> None:
    """A mount below a closed directory is no obstacle."""
    for sandbox in sandboxes_of(tmp_path, [ShimMount(str(volume), "/.data")]):
        (tmp_path / "closed/inside").mkdir(parents=True, exist_ok=True)
        inner = ShimMount(str(volume), str(tmp_path / "closed/inside"), is_read_only=True)
        mounts = [*sandbox.mounts, inner]
        read_only = Sandbox(sandbox.level, "/", mounts, sandbox.has_pid_namespace, is_root_read_only=True, **OWN)
        script = f"touch {tmp_path}/closed/inside/x /.data/y; ls /.data"
        assert ran(tmp_path, ["sh", "-c", f"({script}) 2>&1 | tail -1"], read_only).output == "y"
        (volume / "y").unlink()


# Processes


def test_a_container_sees_its_own_processes_only_and_none_outlives_it(tmp_path: Path) -> None:
    script = "setsid sleep 600 & ls /proc | grep -c '^[0-9]'; exit 5"
    for sandbox in sandboxes_of(tmp_path):
        if sandbox.has_pid_namespace:
            ended = ran(tmp_path, ["sh", "-c", script], sandbox)
            assert ended.code == 5
            assert 3 <= int(ended.output) <= 6  # init, the shell, sleep, ls and grep


def test_ipc_is_shared_unless_it_has_a_namespace(tmp_path: Path) -> None:
    for sandbox in sandboxes_of(tmp_path):
        for has_namespace in (True, False):
            asked = msgspec.structs.replace(sandbox, has_ipc_namespace=has_namespace)
            ended = ran(tmp_path, ["readlink", "/proc/self/ns/ipc"], asked)
            assert (ended.output != os.readlink("/proc/self/ns/ipc")) is has_namespace


def test_the_kernel_kills_a_container_whose_shim_is_killed(tmp_path: Path) -> None:
    for sandbox in sandboxes_of(tmp_path):

        async def story(sandbox: Sandbox = sandbox) -> None:
            config = ShimConfig(
                ["sleep", "600"], PATH, str(tmp_path / "log"), str(tmp_path / "record"), sandbox=sandbox
            )
            shim = await ShimProcess.start(config)
            pid = (await anext(shim.reports())).running
            assert is_alive(pid)
            shim._process.kill()
            await wait_gone(pid)
            await shim.close()

        played(story)


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_init_ends_as_the_command_does(tmp_path: Path, script: str, code: int) -> None:
    for sandbox in sandboxes_of(tmp_path):
        assert ran(tmp_path, ["sh", "-c", script], sandbox).code == code


def test_a_command_beside_it_sees_the_same(tmp_path: Path, volume: Path) -> None:
    for sandbox in sandboxes_of(tmp_path, [ShimMount(str(volume), "/.data")], directory="/.data"):
        beside = ran(
            tmp_path, ["sleep", "600"], sandbox, ["sh", "-c", "pwd; cat /.data/file; ls -d /proc/[0-9]*"]
        ).command
        assert beside is not None
        assert (beside.code, beside.error) == (0, "")
        assert beside.output.startswith("/.data\nhello\n/proc/1\n")


# Users, for root

if os.getuid() == 0:

    def separate(mounts: Sequence[ShimMount], first_id: int, **fields: object) -> Sandbox:
        identity: dict[str, Any] = {
            "user": 1000,
            "group": 2000,
            "groups": [3000],
            "sets_user": True,
            "capabilities": [],
            **fields,
        }
        return Sandbox(ROOT, "/", list(mounts), True, id_map=id_map(first_id), **identity)

    def test_a_pod_has_ids_of_its_own_and_its_volumes_keep_theirs(tmp_path: Path, volume: Path) -> None:
        os.chown(volume, 1000, 2000)
        users = PodUsers(tmp_path / "lock")
        first_id = users.first_id("a")
        script = (
            "id -u; id -g; id -G; echo new > /.data/new; chmod 600 /.data/new; stat -c %u:%g /.data/new /etc/passwd"
        )
        mount = ShimMount(str(volume), "/.data", has_mapped_ids=True)
        ended = ran(tmp_path, ["sh", "-c", script], separate([mount], first_id))
        users.close()

        assert ended == Ended(0, "1000\n2000\n2000 3000\n1000:2000\n65534:65534", "")
        assert ((volume / "new").stat().st_uid, (volume / "new").stat().st_gid) == (1000, 2000)

    def test_the_host_sees_another_user_without_rights(tmp_path: Path) -> None:
        async def story() -> None:
            sandbox = separate([], 0x7000_0000)
            config = ShimConfig(
                ["sleep", "600"], PATH, str(tmp_path / "log"), str(tmp_path / "record"), sandbox=sandbox
            )
            shim = await ShimProcess.start(config)
            init = (await anext(shim.reports())).running
            (child,) = text_of(Path(f"/proc/{init}/task/{init}/children")).split()
            status = dict(line.split(":\t", 1) for line in text_of(Path(f"/proc/{child}/status")).splitlines())
            assert status["Uid"].split() == [str(0x7000_0000 + 1000)] * 4
            assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {0}
            await shim.close()

        played(story)

    @pytest.mark.parametrize(
        ("fields", "script", "wanted"),
        [
            pytest.param(
                {"user": 0, "capabilities": [0]},
                "grep CapEff /proc/self/status",
                "CapEff:\t0000000000000001",
                id="capabilities",
            ),
            pytest.param(
                {"user": 7, "capabilities": [0]},
                "grep CapEff /proc/self/status",
                "CapEff:\t0000000000000000",
                id="not root",
            ),
            pytest.param(
                {"has_no_new_privileges": True},
                "grep NoNewPrivs /proc/self/status",
                "NoNewPrivs:\t1",
                id="no escalation",
            ),
            pytest.param(
                {"user": 0, "capabilities": None},
                "cat /root/.none 2>&1",
                "cat: /root/.none: Permission denied",
                id="root of nothing",
            ),
            pytest.param(
                {"user": 0, "capabilities": None},
                "cat /proc/1/environ 2>&1",
                "cat: /proc/1/environ: Permission denied",
                id="not init",
            ),
        ],
    )
    def test_what_a_user_may_do(tmp_path: Path, fields: dict[str, object], script: str, wanted: str) -> None:
        assert ran(tmp_path, ["sh", "-c", f"{script}; true"], separate([], 0x7000_0000, **fields)).output == wanted

    def test_a_command_beside_it_is_the_same_user(tmp_path: Path) -> None:
        beside = ran(tmp_path, ["sleep", "600"], separate([], 0x7000_0000), ["id"]).command
        assert beside is not None
        assert beside.output.startswith("uid=1000")
        assert "gid=2000" in beside.output


def test_what_fails_in_the_sandbox_is_reported(tmp_path: Path) -> None:
    for sandbox in sandboxes_of(tmp_path, [ShimMount(str(tmp_path / "missing"), "/mnt")]):
        ended = ran(tmp_path, ["true"], sandbox)
        assert "missing: No such file or directory" in ended.failure
