"""Cgroups: limits of memory and CPU, where this user may set them.

Input: the cgroup mounts and memberships of this process; resource limits. Output: a `Cgroup` for each run, with the
directories that its process joins, and files that kill it and report OOM kills.

    <group of this process>/mooring-<hash of the pods directory>/<pod uid>_<container>_<attempt>

 1. cgroup v1, v2 and the hybrid layout are supported.
 2. Limits that cannot be set are reported once (`limitations`). Nothing fails because of them.
 3. In v2 a group with processes cannot have limited children. If this process is alone in its group, it moves into a
    child group; otherwise the group stays as it is.
 4. A group is removed with its run, the parent with this process, those of a killed process at the next start.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from mooring.api.quantity import quantity_milli, quantity_value
from mooring.api.views.pod import ResourceRequirements

CPU_PERIOD_US = 100_000
CPU_QUOTA_US_MIN = 1_000
"""The minimum of the kernel."""
CONTROLLERS = ("memory", "cpu")
_OURS = "mooring-"
_SELF = "mooring-self"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CgroupTree:
    """A cgroup hierarchy, and the group of this process in it."""

    place: Path
    is_v2: bool
    controllers: tuple[str, ...]
    """Those of `CONTROLLERS` that it has."""


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The groups of one run; empty where none can be created."""

    directories: tuple[str, ...] = ()
    kill_files: tuple[str, ...] = ()
    oom_files: tuple[str, ...] = ()


class Cgroups:
    """The groups of one pods directory."""

    def __init__(self, trees: Sequence[CgroupTree], pods_directory: Path) -> None:
        self._trees: list[CgroupTree] = []
        self.name = _OURS + blake2b(str(pods_directory).encode(), digest_size=6).hexdigest()
        limitations = dict.fromkeys(CONTROLLERS, "the kernel shows none here")
        for tree in trees:
            error = _make_parent(tree, self.name)
            for controller in tree.controllers:
                limitations[controller] = error
            if not error:
                self._trees.append(tree)
        self._limitations = {controller: why for controller, why in limitations.items() if why}

    @property
    def limitations(self) -> str:
        """Which limits cannot be set and why; empty if all can."""
        if not self._limitations:
            return ""
        what = " and ".join(self._limitations)
        why = "; ".join(dict.fromkeys(self._limitations.values()))
        return f"limits of {what} are not enforced: no writable cgroup ({why})"

    def make(self, run: str, resources: ResourceRequirements) -> Cgroup:
        """Create the groups of a run and set its limits."""
        directories, kills, ooms = [], [], []
        for tree in self._trees:
            directory = tree.place / self.name / run
            try:
                directory.mkdir(exist_ok=True)
                for file, value in _settings(tree, resources):
                    (directory / file).write_text(value, encoding="ascii")
            except OSError as error:
                logger.warning("setting the limits of %s failed: %s", run, error)
                continue
            directories.append(str(directory))
            if (directory / "cgroup.kill").exists():
                kills.append(str(directory / "cgroup.kill"))
            if "memory" in tree.controllers:
                ooms.append(str(directory / ("memory.events" if tree.is_v2 else "memory.oom_control")))
        return Cgroup(tuple(directories), tuple(kills), tuple(ooms))

    def change(self, run: str, resources: ResourceRequirements) -> str:
        """Set other limits for a run. Returns the errors."""
        errors = []
        for tree in self._trees:
            directory = tree.place / self.name / run
            for file, value in _settings(tree, resources):
                try:
                    (directory / file).write_text(value, encoding="ascii")
                except OSError as error:
                    errors.append(f"{file} cannot be {value}: {(error.strerror or str(error)).lower()}")
        return "; ".join(errors)

    def clear(self) -> None:
        """Kill all processes in the groups of runs, and remove the groups."""
        for tree in self._trees:
            for directory in _below(tree.place / self.name):
                _kill(directory)
                _remove(directory)

    def close(self) -> None:
        self.clear()
        for tree in self._trees:
            _remove(tree.place / self.name)


def own_trees(mounts: str, memberships: str) -> list[CgroupTree]:
    """The groups of this process, from the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    places = {}
    for line in memberships.splitlines():
        _, controllers, path = line.split(":", 2)
        places[controllers] = path
    trees = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        root, mount = fields[3], Path(fields[4])
        if kind[0] == "cgroup2" and "" in places:
            place = _at(mount, root, places[""])
            trees.append(CgroupTree(place, True, _words(place / "cgroup.controllers")))
        elif kind[0] == "cgroup":
            own = next((name for name in places if name and set(name.split(",")) <= set(kind[2].split(","))), "")
            had = tuple(name for name in CONTROLLERS if name in own.split(","))
            if had:
                trees.append(CgroupTree(_at(mount, root, places[own]), False, had))
    return trees


def find_cgroups(pods_directory: Path) -> Cgroups:
    """The groups of this process."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        memberships = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:
        return Cgroups((), pods_directory)
    return Cgroups(own_trees(mounts, memberships), pods_directory)


def _settings(tree: CgroupTree, resources: ResourceRequirements) -> Iterator[tuple[str, str]]:
    """Files and their values."""
    limits = resources.limits
    if "memory" in limits and "memory" in tree.controllers:
        limit_bytes = quantity_value(limits["memory"])
        yield ("memory.max" if tree.is_v2 else "memory.limit_in_bytes", str(limit_bytes))
        if tree.is_v2:
            yield "memory.oom.group", "1"  # as in the kubelet: an OOM kill ends all processes of the container
    if "cpu" in limits and "cpu" in tree.controllers:
        cpu_milli = quantity_milli(limits["cpu"])
        quota_us = max(CPU_QUOTA_US_MIN, cpu_milli * CPU_PERIOD_US // 1000)
        yield ("cpu.max", f"{quota_us} {CPU_PERIOD_US}") if tree.is_v2 else ("cpu.cfs_quota_us", str(quota_us))


def _make_parent(tree: CgroupTree, name: str) -> str:
    """Create the parent group of all runs. Returns why that failed."""
    try:
        if tree.is_v2 and tree.controllers:
            _enable_for_children(tree.place, tree.controllers)
        (tree.place / name).mkdir(exist_ok=True)
        if tree.is_v2 and tree.controllers:
            _enable_for_children(tree.place / name, tree.controllers)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return f"{tree.place} has other processes too; start mooring in a cgroup of its own"
        return f"{tree.place}: {(error.strerror or str(error)).lower()}"
    return ""


def _enable_for_children(directory: Path, controllers: Sequence[str]) -> None:
    control = directory / "cgroup.subtree_control"
    missing = [name for name in controllers if name not in control.read_text(encoding="ascii").split()]
    if not missing:
        return
    text = " ".join(f"+{name}" for name in missing)
    try:
        control.write_text(text, encoding="ascii")
    except OSError as error:
        if error.errno != errno.EBUSY or _members(directory) != [os.getpid()]:
            raise
        (directory / _SELF).mkdir(exist_ok=True)
        (directory / _SELF / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        control.write_text(text, encoding="ascii")


def _members(directory: Path) -> list[int]:
    return [int(pid) for pid in (directory / "cgroup.procs").read_text(encoding="ascii").split()]


def _below(directory: Path) -> list[Path]:
    try:
        return [path for path in directory.iterdir() if path.is_dir()]
    except OSError:
        return []


def _kill(directory: Path) -> None:
    with suppress(OSError):
        if (directory / "cgroup.kill").exists():
            (directory / "cgroup.kill").write_text("1", encoding="ascii")
        for pid in _members(directory):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, 9)


def _remove(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()


def _at(mount: Path, root: str, path: str) -> Path:
    """The path of a group below a mount, which may show a part of the hierarchy only."""
    inside = path.removeprefix(root.rstrip("/")) if root != "/" else path
    return mount / inside.lstrip("/")


def _words(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_text(encoding="ascii").split()
    except OSError:
        return ()
    return tuple(name for name in CONTROLLERS if name in text)
