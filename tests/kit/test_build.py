"""The commit of a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.kit.build import build, checked_out_commit, commit_of

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
