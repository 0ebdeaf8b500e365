"""The entrypoint program, with real processes and real mounts."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from mooring.kubelet.volumes import entrypoint
from mooring.kubelet.volumes.mounts import Mount, MountAbility, entry_command, mount_ability
from tests.waiting import LIMIT_S

ABILITY = mount_ability()
"""Of whoever runs these tests. Where nothing can be mounted, what is tested is that processes run all the same."""


def ran(
    argv: Sequence[str],
    *,
    mounts: Sequence[Mount] = (),
    ability: MountAbility = ABILITY,
    directory: str = "/",
    joins_pid: int = 0,
) -> tuple[int, str, str]:
    """Its exit code, what it wrote, and what was said on the pipe."""
    reading, writing = os.pipe()
    command = entry_command(
        argv, mounts=mounts, ability=ability, directory=directory, error_fd=writing, joins_pid=joins_pid
    )
    try:
        ended = subprocess.run(
            command, pass_fds=(writing,), capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    finally:
        os.close(writing)
    with os.fdopen(reading) as pipe:
        return ended.returncode, ended.stdout + ended.stderr, pipe.read()


def shell(script: str, *mounts: Mount, directory: str = "/") -> str:
    code, output, error = ran(["sh", "-c", script], mounts=mounts, directory=directory)
    assert (code, error) == (0, ""), output
    return output


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume/file").write_text("hello\n")
    return tmp_path / "volume"


# ------------------------------------------------------------------------------------------------- becoming the command


def test_a_command_is_run_with_its_arguments_and_its_code(tmp_path: Path) -> None:
    script = 'echo "$0 $1"; pwd; exit 7'

    assert ran(["sh", "-c", script, "a", "b c"], directory=str(tmp_path)) == (7, f"a b c\n{tmp_path}\n", "")


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        pytest.param("nowhere", 'exec: "nowhere": executable file not found in $PATH\n', id="not in the path"),
        pytest.param("/no/where", 'exec: "/no/where": stat /no/where: no such file or directory\n', id="not there"),
        pytest.param("/etc/passwd", 'exec: "/etc/passwd": permission denied\n', id="not executable"),
        pytest.param("/etc", 'exec: "/etc": is a directory\n', id="a directory"),
    ],
)
def test_why_it_cannot_run_is_said_on_the_pipe(command: str, wanted: str) -> None:
    assert ran([command]) == (entrypoint.EXIT_CODE, "", wanted)


def test_a_file_without_a_known_form_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "odd").write_text("no shebang")
    (tmp_path / "odd").chmod(0o755)
    (tmp_path / "lost").write_text("#!/no/where\n")
    (tmp_path / "lost").chmod(0o755)

    assert ran([str(tmp_path / "odd")])[2] == f"exec {tmp_path}/odd: exec format error\n"
    assert ran([str(tmp_path / "lost")])[2] == f'exec: "{tmp_path}/lost": its interpreter does not exist\n'


def test_a_broken_pipe_kills_the_command_as_usual() -> None:
    # Python ignores SIGPIPE; who inherited that would go on writing.
    assert ran(["sh", "-c", "kill -PIPE $$; exit 3"])[0] == -signal.SIGPIPE


def test_a_directory_that_is_not_there_is_said() -> None:
    assert ran(["pwd"], ability=MountAbility.NONE, directory="/no/where") == (
        entrypoint.EXIT_CODE,
        "",
        'chdir to cwd ("/no/where") failed: no such file or directory\n',
    )


def test_who_cannot_mount_runs_all_the_same(volume: Path) -> None:
    mounts = [Mount("v", str(volume), "/.mooring-data")]

    assert ran(["ls", "-d", "/"], mounts=mounts, ability=MountAbility.NONE) == (0, "/\n", "")


# --------------------------------------------------------------------------------------------------------------- mounts

somewhere = pytest.mark.parametrize("target", ["/.mooring-data/x/y", "/etc/.mooring-data", "/var/run/.mooring/x"])
"""Nowhere; among the files of a directory; behind a link."""


def abilities() -> list[MountAbility]:
    """Root can do it both ways."""
    both = [MountAbility.ROOT, MountAbility.USER_NAMESPACE]
    return both if ABILITY is MountAbility.ROOT else [ABILITY]


@somewhere
@pytest.mark.parametrize("ability", abilities(), ids=lambda ability: ability.value)
def test_a_volume_is_seen_where_nothing_was(volume: Path, target: str, ability: MountAbility) -> None:
    argv = ["sh", "-c", f"cat {target}/file && echo new > {target}/new && ls -d /usr /etc/passwd /dev/null"]
    code, output, error = ran(argv, mounts=[Mount("v", str(volume), target)], ability=ability)

    if ability is MountAbility.NONE:
        assert code != 0
        return
    assert (code, output, error) == (0, "hello\n/dev/null\n/etc/passwd\n/usr\n", "")
    assert (volume / "new").read_text() == "new\n"
    assert not Path(target).exists(), "it is seen by others"


if ABILITY is not MountAbility.NONE:

    def test_a_volume_hides_what_was_there(volume: Path) -> None:
        assert shell("ls /tmp", Mount("v", str(volume), "/tmp")) == "file\n"

    def test_sources_below_a_volume_are_seen_all_the_same(volume: Path, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        mounts = [Mount("v", str(volume), "/tmp"), Mount("w", str(tmp_path / "other"), "/tmp/inside/deep")]

        assert shell("find /tmp | sort", *mounts) == "/tmp\n/tmp/file\n/tmp/inside\n/tmp/inside/deep\n"

    def test_what_is_for_reading_cannot_be_written(volume: Path) -> None:
        mount = Mount("v", str(volume), "/.mooring-data", is_read_only=True)

        assert "Read-only file system" in shell("touch /.mooring-data/x; cat /.mooring-data/file", mount)
        assert not (volume / "x").exists()

    def test_a_single_file_is_seen(volume: Path) -> None:
        mount = Mount("v", str(volume / "file"), "/etc/.mooring/one.txt")

        assert shell("cat /etc/.mooring/one.txt; ls /etc/.mooring", mount) == "hello\none.txt\n"

    def test_a_file_does_not_fit_over_a_directory(volume: Path) -> None:
        code, _, error = ran(["true"], mounts=[Mount("v", str(volume / "file"), "/etc")])

        assert (code, error) == (128, "/etc is a directory here, and a file cannot be mounted over it\n")

    def test_a_directory_that_is_not_there_is_made_where_only_the_command_sees_it() -> None:
        assert shell("pwd", directory="/.mooring-work/here") == "/.mooring-work/here\n"
        assert not Path("/.mooring-work").exists()

    def test_the_command_starts_in_its_volume(volume: Path) -> None:
        assert shell("cat file", Mount("v", str(volume), "/.mooring-data"), directory="/.mooring-data") == "hello\n"

    def test_the_command_starts_in_a_directory_that_its_volume_hides(volume: Path, tmp_path: Path) -> None:
        hidden = Mount("v", str(volume), str(tmp_path.parent))

        assert shell("echo fine", hidden, directory=str(tmp_path)) == "fine\n"

    @pytest.mark.parametrize("ability", abilities(), ids=lambda ability: ability.value)
    def test_who_joins_sees_the_same(volume: Path, ability: MountAbility) -> None:
        reading, writing = os.pipe()
        mounts = [Mount("v", str(volume), "/.mooring-data")]
        command = entry_command(["cat"], mounts=mounts, ability=ability, directory="/", error_fd=writing)
        with subprocess.Popen(command, pass_fds=(writing,), stdin=subprocess.PIPE) as container:
            os.close(writing)
            with os.fdopen(reading) as pipe:
                assert pipe.read() == ""
            joined = ran(["cat", "file"], ability=ability, directory="/.mooring-data", joins_pid=container.pid)
            assert container.stdin is not None
            container.stdin.close()

        assert joined == (0, "hello\n", "")
