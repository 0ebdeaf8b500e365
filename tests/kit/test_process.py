"""Facts about the process and the build; temporary directories."""

from __future__ import annotations

import gc
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mooring.kit.build import build, checked_out_commit, commit_of
from mooring.kit.memory import end_loading, loading, settle_memory
from mooring.kit.sampling import ThreadSampler, main_thread_sampler, stack_of
from mooring.kit.temporary_directory import remove_temporary_directories, temporary_directory

COMMIT = "773e7561552941dc14088de1f0de777d054f9f62"
MAIN = "refs/heads/main"


def _detached(git: Path) -> None:
    (git / "HEAD").write_text(f"{COMMIT}\n")


def _branch(git: Path) -> None:
    (git / "HEAD").write_text(f"ref: {MAIN}\n")
    (git / MAIN).parent.mkdir(parents=True)
    (git / MAIN).write_text(f"{COMMIT}\n")


def _packed_branch(git: Path) -> None:
    (git / "HEAD").write_text(f"ref: {MAIN}\n")
    (git / "packed-refs").write_text(f"# pack-refs with: peeled\n{'0' * 40} refs/heads/other\n{COMMIT} {MAIN}\n")


@pytest.mark.parametrize("check_out", [_detached, _branch, _packed_branch])
def test_the_commit_of_a_checkout(check_out: object, tmp_path: Path) -> None:
    assert callable(check_out)
    (tmp_path / ".git").mkdir()
    check_out(tmp_path / ".git")
    assert checked_out_commit(tmp_path) == COMMIT


def test_the_commit_of_a_linked_work_tree(tmp_path: Path) -> None:
    main, linked = tmp_path / "main" / ".git", tmp_path / "linked"
    own = main / "worktrees" / "linked"
    own.mkdir(parents=True)
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {own}\n")
    (own / "HEAD").write_text(f"ref: {MAIN}\n")
    (own / "commondir").write_text("../..\n")
    (main / MAIN).parent.mkdir(parents=True)
    (main / MAIN).write_text(COMMIT)
    assert checked_out_commit(linked) == COMMIT


def test_a_package_knows_its_commit(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "mooring"
    package.mkdir(parents=True)
    assert commit_of(package) == ""
    (package / "commit.txt").write_text(f"{COMMIT}\n")
    assert commit_of(package) == COMMIT


def test_this_build() -> None:
    found = build()
    assert found.version
    assert len(found.commit) in (0, 40)
    assert "/" in found.platform


# --- Settings of the garbage collector, and the sampling profiler


def test_objects_that_exist_when_memory_is_settled_are_not_traversed_again() -> None:
    threshold = gc.get_threshold()
    pods = [{"pod": [number]} for number in range(1000)]
    try:
        settle_memory()
        walked = {id(get_object) for get_object in gc.get_objects()}
        assert gc.get_freeze_count() >= len(pods)
        assert not any(id(pod) in walked for pod in pods)
        later = {"made": ["later"]}
        assert id(later) in {id(get_object) for get_object in gc.get_objects()}
    finally:
        gc.set_threshold(*threshold)


def test_nothing_is_collected_while_a_program_is_read_in_and_seldom_afterwards() -> None:
    threshold = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    try:
        with loading():
            was_collecting = gc.isenabled()
            end_loading()
            assert [was_collecting, gc.isenabled()] == [False, True]
            assert gc.get_threshold()[0] > 700
            assert gc.get_freeze_count() > 0
    finally:
        gc.set_threshold(*threshold)


def test_a_program_that_cannot_be_read_in_leaves_the_collector_as_it_was() -> None:
    with suppress(ValueError), loading():
        raise ValueError("a bad flag")
    assert gc.isenabled()


# --- The sampler counts CPU time by stack ----------------------------------------------------------------------------


def test_work_is_seen_and_waiting_is_not() -> None:
    sampler = main_thread_sampler(0.001)
    began_ns = time.thread_time_ns()
    sampler.start()
    while seen_ns(sampler, "burn") < 50e6:
        burn(0.02)
    threading.Event().wait(0.1)
    sampler.stop()
    # Only CPU time is counted, and the thread has used no more than this.
    assert seen_ns(sampler) <= time.thread_time_ns() - began_ns


def test_a_stack_has_the_leaf_first() -> None:
    stack = stack_of(sys._getframe())
    assert stack[0][0] == "test_a_stack_has_the_leaf_first"
    assert stack[0][1] == __file__


def seen_ns(sampler: ThreadSampler, function: str = "") -> int:
    """Nanoseconds of all stacks, or of those with a function in them."""
    stacks = list(sampler.stacks.items())  # at once: the sampler may be adding one
    return sum(spent_ns for stack, (_, spent_ns) in stacks if not function or function in [step[0] for step in stack])


def burn(cpu_s: float) -> None:
    end_s = time.thread_time() + cpu_s
    while time.thread_time() < end_s:
        sum(range(1_000))


# --- Temporary directories are removed at the end, and those of killed processes by the next process


PREFIX = "mooring-test-"
PROGRAM = f"""
import sys
from mooring.kit.temporary_directory import temporary_directory
with temporary_directory({PREFIX!r}) as path:
    (path / "key.pem").write_text("secret")
    print(path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_directory_is_private_and_removed_at_the_end(tmp_path: Path) -> None:
    with temporary_directory(PREFIX) as path:
        (path / "key.pem").write_text("secret")
        assert (path.parent, path.name.startswith(PREFIX)) == (tmp_path, True)
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_failing_block_removes_its_directory(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), temporary_directory(PREFIX):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_directories_are_removed_before_the_process_ends_at_once(tmp_path: Path) -> None:
    with temporary_directory(PREFIX), temporary_directory("mooring-other-"):
        remove_temporary_directories()
        assert list(tmp_path.iterdir()) == []


def test_the_directory_of_a_killed_process_is_removed_by_the_next_one() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        other = Path(process.stdout.readline().strip())
        with temporary_directory(PREFIX):
            assert (other / "key.pem").exists(), "its process is running"
        process.kill()
        process.wait()
        assert (other / "key.pem").exists(), "a killed process removes nothing"
        with temporary_directory("mooring-other-"):
            assert other.exists(), "another prefix"
        with temporary_directory(PREFIX):
            assert not other.exists()
