"""Cgroups: values of limits, where they can be set, and the text where they cannot.

The trees are directories that look like the kernel's; that the kernel does as they say is seen in tests/cluster, on
machines that let us.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.api.views.pod import ResourceRequirements
from mooring.kubelet.processes.cgroups import Cgroups, CgroupTree, own_trees

LIMITS = ResourceRequirements(limits={"memory": "64Mi", "cpu": "500m"})


def v2(folder: Path, controllers: str = "cpu memory") -> CgroupTree:
    """A tree of the new form, whose groups hand everything down."""
    for place in (folder, folder / "ours"):
        place.mkdir(exist_ok=True)
    (folder / "cgroup.subtree_control").write_text(controllers)
    return CgroupTree(folder, True, tuple(controllers.split()))


def v1(folder: Path, controller: str) -> CgroupTree:
    folder.mkdir()
    return CgroupTree(folder, False, (controller,))


def written(folder: Path) -> dict[str, str]:
    (run,) = folder.glob("mooring-*/run")
    return {path.name: path.read_text() for path in run.iterdir()}


def handing_down(folder: Path, cgroups_of: Path) -> Cgroups:
    """The kernel makes this file with the group; here it has to be there before."""
    probe = Cgroups([], cgroups_of)
    group = folder / probe.name
    group.mkdir(parents=True)
    (group / "cgroup.subtree_control").write_text("cpu memory")
    return Cgroups([v2(folder)], cgroups_of)


def test_limits_in_one_tree(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    cgroups = handing_down(tmp_path / "tree", tmp_path)
    assert cgroups.limitations == ""
    made = cgroups.make("run", LIMITS)
    assert written(tmp_path / "tree") == {
        "memory.max": "67108864",
        "memory.oom.group": "1",
        "cpu.max": "50000 100000",
    }
    assert [Path(path).name for path in made.oom_files] == ["memory.events"]


def test_a_run_that_goes_on_gets_other_limits(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    cgroups = handing_down(tmp_path / "tree", tmp_path)
    cgroups.make("run", LIMITS)
    assert cgroups.change("run", ResourceRequirements(limits={"memory": "128Mi", "cpu": "2"})) == ""
    assert written(tmp_path / "tree") == {
        "memory.max": "134217728",
        "memory.oom.group": "1",
        "cpu.max": "200000 100000",
    }


def test_limits_that_cannot_be_set_are_reported_with_the_error_of_the_kernel(tmp_path: Path) -> None:
    cgroups = Cgroups([v1(tmp_path / "cpu", "cpu")], tmp_path)
    assert cgroups.change("gone", LIMITS) == "cpu.cfs_quota_us cannot be 50000: no such file or directory"


def test_limits_in_a_tree_for_each_controller(tmp_path: Path) -> None:
    trees = [v1(tmp_path / "memory", "memory"), v1(tmp_path / "cpu", "cpu")]
    cgroups = Cgroups(trees, tmp_path)
    assert cgroups.limitations == ""
    made = cgroups.make("run", LIMITS)
    assert written(tmp_path / "memory") == {"memory.limit_in_bytes": "67108864"}
    assert written(tmp_path / "cpu") == {"cpu.cfs_quota_us": "50000"}
    assert len(made.directories) == 2
    assert [Path(path).name for path in made.oom_files] == ["memory.oom_control"]


def test_a_container_without_limits_has_none_set(tmp_path: Path) -> None:
    cgroups = Cgroups([v1(tmp_path / "memory", "memory")], tmp_path)
    cgroups.make("run", ResourceRequirements())
    assert written(tmp_path / "memory") == {}


def test_a_little_cpu_is_as_little_as_the_kernel_takes(tmp_path: Path) -> None:
    cgroups = Cgroups([v1(tmp_path / "cpu", "cpu")], tmp_path)
    cgroups.make("run", ResourceRequirements(limits={"cpu": "1m"}))
    assert written(tmp_path / "cpu") == {"cpu.cfs_quota_us": "1000"}


@pytest.mark.parametrize(
    ("controllers", "said"),
    [
        pytest.param((), "limits of memory and cpu are not enforced", id="neither"),
        pytest.param(("memory",), "limits of cpu are not enforced", id="no cpu"),
        pytest.param(("cpu",), "limits of memory are not enforced", id="no memory"),
    ],
)
def test_what_cannot_be_limited_is_said(tmp_path: Path, controllers: tuple[str, ...], said: str) -> None:
    cgroups = Cgroups([v1(tmp_path / name, name) for name in controllers], tmp_path)
    assert cgroups.limitations.startswith(said)


def test_a_place_that_cannot_be_written_is_said_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cgroups = Cgroups([CgroupTree(tmp_path / "file", False, ("memory", "cpu"))], tmp_path)
    assert "not a directory" in cgroups.limitations
    assert cgroups.make("run", LIMITS).directories == ()


def test_nothing_is_left(tmp_path: Path) -> None:
    tree = v1(tmp_path / "memory", "memory")
    cgroups = Cgroups([tree], tmp_path)
    cgroups.make("run", ResourceRequirements())
    cgroups.close()
    assert list(tree.place.iterdir()) == []


MIXED_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices
"""


def test_where_we_are_in_trees_of_their_own() -> None:
    trees = own_trees(MIXED_MOUNTS, "4:memory:/user/me\n3:cpu,cpuacct:/\n2:devices:/x\n")
    assert {(str(tree.place), tree.is_v2, tree.controllers) for tree in trees} == {
        ("/sys/fs/cgroup/cpu,cpuacct", False, ("cpu",)),
        ("/sys/fs/cgroup/memory/user/me", False, ("memory",)),
    }


def test_where_we_are_in_one_tree(tmp_path: Path) -> None:
    (tmp_path / "scope").mkdir()
    (tmp_path / "scope" / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    mounts = f"41 31 0:38 /user /{str(tmp_path)[1:]} rw,relatime - cgroup2 cgroup2 rw\n"
    assert own_trees(mounts, "0::/user/scope\n") == [CgroupTree(tmp_path / "scope", True, ("memory", "cpu"))]
