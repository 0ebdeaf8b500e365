"""Cgroups: limits of memory and CPU for real, where this user may set them.

Comes in   where the kernel has its cgroups, and in which of them we are; limits of containers
Goes out   a `Cgroup` for each run: directories that its process enters, files that kill it and that tell of its end

    <ours>/mooring-<which pods directory>/<pod uid>_<container>_<attempt>

 1. Both forms of the kernel are served: one tree for everything (v2), or one for each controller (v1), or a mixture.
 2. What cannot be set is said once, in words (`lacking`), and nothing fails because of it.
 3. In v2 a group with processes cannot hand limits down. If we are alone in ours, we move one level down to make room;
    if others are there too, it is theirs and stays as it is.
 4. Nothing is left: a run's group goes with the run, ours with us, and those of a mooring that was killed at the next
    start.
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
"""Less the kernel does not take."""
CONTROLLERS = ("memory", "cpu")
_OURS = "mooring-"
_SELF = "mooring-self"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CgroupTree:
    """One tree of cgroups, and our place in it."""

    place: Path
    is_v2: bool
    controllers: tuple[str, ...]
    """Which of `CONTROLLERS` it has."""


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The groups of one run; none, where none can be made."""

    directories: tuple[str, ...] = ()
    kill_files: tuple[str, ...] = ()
    oom_files: tuple[str, ...] = ()


class Cgroups:
    """Those of one pods directory."""

    def __init__(self, trees: Sequence[CgroupTree], pods_directory: Path) -> None:
        self._trees: list[CgroupTree] = []
        self.name = _OURS + blake2b(str(pods_directory).encode(), digest_size=6).hexdigest()
        limitations = dict.fromkeys(CONTROLLERS, "the kernel shows none here")
        for tree in trees:
            why_not = _make_room(tree, self.name)
            for controller in tree.controllers:
                limitations[controller] = why_not
            if not why_not:
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
        """The groups of one run, with its limits."""
        directories, kills, ooms = [], [], []
        for tree in self._trees:
            directory = tree.place / self.name / run
            try:
                directory.mkdir(exist_ok=True)
                for file, value in _settings(tree, resources):
                    (directory / file).write_text(value, encoding="ascii")
            except OSError as error:
                logger.warning("the limits of %s cannot be set: %s", run, error)
                continue
            directories.append(str(directory))
            if (directory / "cgroup.kill").exists():
                kills.append(str(directory / "cgroup.kill"))
            if "memory" in tree.controllers:
                ooms.append(str(directory / ("memory.events" if tree.is_v2 else "memory.oom_control")))
        return Cgroup(tuple(directories), tuple(kills), tuple(ooms))

    def change(self, run: str, resources: ResourceRequirements) -> str:
        """Other limits for a run that goes on. Says which cannot be set, and why."""
        refusals = []
        for tree in self._trees:
            directory = tree.place / self.name / run
            for file, value in _settings(tree, resources):
                try:
                    (directory / file).write_text(value, encoding="ascii")
                except OSError as error:
                    refusals.append(f"{file} cannot be {value}: {(error.strerror or str(error)).lower()}")
        return "; ".join(refusals)

    def clear(self) -> None:
        """Remove the groups of runs, with everybody who is still in them; of an earlier life, for example."""
        for tree in self._trees:
            for directory in _below(tree.place / self.name):
                _kill(directory)
                _remove(directory)

    def close(self) -> None:
        self.clear()
        for tree in self._trees:
            _remove(tree.place / self.name)


def own_trees(mounts: str, memberships: str) -> list[CgroupTree]:
    """Our places in all trees, from the texts of /proc/self/mountinfo and /proc/self/cgroup."""
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
    """Those of this process."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        memberships = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:
        return Cgroups((), pods_directory)
    return Cgroups(own_trees(mounts, memberships), pods_directory)


def _settings(tree: CgroupTree, resources: ResourceRequirements) -> Iterator[tuple[str, str]]:
    """Which files get which values."""
    limits = resources.limits
    if "memory" in limits and "memory" in tree.controllers:
        limit_bytes = quantity_value(limits["memory"])
        yield ("memory.max" if tree.is_v2 else "memory.limit_in_bytes", str(limit_bytes))
        if tree.is_v2:
            yield "memory.oom.group", "1"  # as a kubelet: a container without one of its processes is of no use
    if "cpu" in limits and "cpu" in tree.controllers:
        cpu_milli = quantity_milli(limits["cpu"])
        quota_us = max(CPU_QUOTA_US_MIN, cpu_milli * CPU_PERIOD_US // 1000)
        yield ("cpu.max", f"{quota_us} {CPU_PERIOD_US}") if tree.is_v2 else ("cpu.cfs_quota_us", str(quota_us))


def _make_room(tree: CgroupTree, name: str) -> str:
    """Make the group that will hold those of all runs. Says why it cannot be."""
    try:
        if tree.is_v2 and tree.controllers:
            _hand_down(tree.place, tree.controllers)
        (tree.place / name).mkdir(exist_ok=True)
        if tree.is_v2 and tree.controllers:
            _hand_down(tree.place / name, tree.controllers)
    except OSError as error:
        if error.errno == errno.EBUSY:
            return f"{tree.place} has other processes too; start mooring in a cgroup of its own"
        return f"{tree.place}: {(error.strerror or str(error)).lower()}"
    return ""


def _hand_down(directory: Path, controllers: Sequence[str]) -> None:
    control = directory / "cgroup.subtree_control"
    wanted = [name for name in controllers if name not in control.read_text(encoding="ascii").split()]
    if not wanted:
        return
    words = " ".join(f"+{name}" for name in wanted)
    try:
        control.write_text(words, encoding="ascii")
    except OSError as error:
        if error.errno != errno.EBUSY or _members(directory) != [os.getpid()]:
            raise
        (directory / _SELF).mkdir(exist_ok=True)
        (directory / _SELF / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        control.write_text(words, encoding="ascii")


def _members(directory: Path) -> list[int]:
    return [int(word) for word in (directory / "cgroup.procs").read_text(encoding="ascii").split()]


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
    """Where a path of a tree is seen, of which only a part may be mounted."""
    inside = path.removeprefix(root.rstrip("/")) if root != "/" else path
    return mount / inside.lstrip("/")


def _words(path: Path) -> tuple[str, ...]:
    try:
        words = path.read_text(encoding="ascii").split()
    except OSError:
        return ()
    return tuple(name for name in CONTROLLERS if name in words)
