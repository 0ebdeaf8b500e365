"""The outcome of `mooring parity`: a table by plugin, the first difference in full, and JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mooring.cli.parity.compare import Difference
from mooring.cli.parity.run import Parity
from mooring.cli.terminal import counted
from mooring.kit.build import KUBERNETES_VERSION


def as_json(parity: Parity) -> str:
    tally = parity.tally
    data = {
        "kubeScheduler": parity.version.text,
        "mooringFollows": KUBERNETES_VERSION,
        "clusters": parity.clusters,
        "pods": parity.pods,
        "leftOut": dict(parity.left_out),
        "undecided": parity.undecided,
        "compared": {part: tally.compared[part] for part in tally.parts()},
        "differences": msgspec.to_builtins(tally.differences),
    }
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"


def as_lines(parity: Parity) -> Iterator[str]:
    tally = parity.tally
    clusters, pods = counted(parity.clusters, "cluster"), counted(parity.pods, "pod")
    yield f"kube-scheduler {parity.version.text}, {clusters}, {pods}"
    for reason, count in parity.left_out.items():
        yield f"not compared: {count} pods that {reason}"
    rows = [("", "compared", "different", "by version")]
    rows += [
        (
            part,
            f"{tally.compared[part]:,}",
            f"{tally.differing(part, is_explained=False):,}",
            f"{tally.differing(part, is_explained=True):,}",
        )
        for part in tally.parts()
    ]
    width = max(len(row[0]) for row in rows)
    for part, compared, different, by_version in rows:
        yield f"{part:<{width}}  {compared:>10}  {different:>9}  {by_version:>10}"
    for reason in dict.fromkeys(each.explained for each in tally.differences if each.explained):
        yield f"by version: {reason}"
    for pod in parity.undecided:
        yield f"kube-scheduler did not decide about {pod}"
    if tally.unexplained:
        yield ""
        yield from _difference_lines(tally.unexplained[0])
        if not parity.version.text.startswith(f"{_minor(KUBERNETES_VERSION)}."):
            yield f"Mooring decides as {KUBERNETES_VERSION}; kube-scheduler is {parity.version.text}"
    elif parity.is_same:
        yield "no difference"


def _difference_lines(difference: Difference) -> Iterator[str]:
    where = f" on node {difference.node}" if difference.node else ""
    yield f"first difference: {difference.part} of pod {difference.pod}{where}"
    yield f"  kube-scheduler: {difference.kube_scheduler}"
    yield f"  mooring:        {difference.mooring}"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
