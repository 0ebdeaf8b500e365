"""The scenario: a workload at a size, as streams of objects.

Output: nodes, other objects, placed, waiting and measured pods as JSON, in the order in which a cluster would have
them.

 1. Objects are generated on demand: a million pods never exist as dictionaries at once.
 2. Variables of every template, besides those of its group: `index` counts within the group, `serial` within all groups
    of a stream, `role` is the name of the stream, `uid` is unique, `node` is the node of a placed pod.
 3. Placed pods are distributed over the nodes in turn. Each round starts one node further, so that periodic properties
    of pods do not always meet the same nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, cycle
from typing import NamedTuple

import msgspec

from bench.templates import Manifest, Template, Value, Values
from bench.workload import NodeGroup, Outcome, Part, PodGroup, Size, Workload, merge_layers
from mooring.api.decode import view_of
from mooring.api.views.meta import ApiObject
from mooring.kit.entropy import Entropy

SEED = 36
BUILT_IN = ("index", "serial", "role", "uid", "node")

_encode = msgspec.json.Encoder().encode


class Item(NamedTuple):
    """One object: its kind and its JSON."""

    kind: type[ApiObject]
    raw: bytes


class PodItem(NamedTuple):
    """One pod as JSON, the objects that exist before it, and its expected outcome."""

    raw: bytes
    companions: tuple[Item, ...]
    outcome: Outcome


class Scenario:
    """The objects of one run."""

    def __init__(self, workload: Workload, size: Size) -> None:
        self.workload = workload
        self.size = size
        self._entropy = Entropy(SEED, workload.name)

    def nodes(self) -> Iterator[Item]:
        groups = self.workload.nodes
        makers = [self._maker(group, "node", number) for number, group in enumerate(groups)]
        for serial, turn in zip(range(self.size.nodes), _turns(groups)):
            yield makers[turn].item(serial)

    def objects(self) -> Iterator[Item]:
        for number, group in enumerate(self.workload.objects):
            maker = self._maker(group, "object", number)
            total = group.count if group.per_node is None else group.per_node * self.size.nodes
            for serial in range(total):
                yield maker.item(serial)

    def placed(self) -> Iterator[PodItem]:
        """The placed pods: an infinite stream."""
        return self._pods(self.workload.placed, "placed")

    def measured(self) -> Iterator[PodItem]:
        """The measured pods: an infinite stream."""
        return self._pods(self.workload.measured, "measured")

    def waiting(self) -> Iterator[PodItem]:
        """The pods that wait in the queue meanwhile: an infinite stream."""
        return self._pods(self.workload.waiting, "waiting")

    def _pods(self, groups: Sequence[PodGroup], role: str) -> Iterator[PodItem]:
        makers = [self._maker(group, role, number) for number, group in enumerate(groups)]
        if makers:
            for serial, turn in zip(count(), _turns(groups)):
                group = groups[turn]
                node = node_name(self.size.nodes, serial, group.only_every) if role == "placed" else ""
                yield makers[turn].pod(serial, node, group.outcome)

    def _maker(self, group: Part, role: str, number: int) -> _Maker:
        return _Maker(group, role, number, self._entropy.fork(f"{role} {number}"), self.size.nodes)


class _Maker:
    """Fills the templates of one group for each object."""

    def __init__(self, group: Part, role: str, number: int, entropy: Entropy, node_count: int) -> None:
        manifest, variables = group.read()
        names = (*BUILT_IN, *variables)
        companions = group.with_each if isinstance(group, PodGroup) else ()
        self._object = _Encoded(manifest, names)
        self._companions = [_Encoded(merge_layers(layers)[0], names) for layers in companions]
        self._sequences = [
            (name, variable.sequence(entropy.fork(name), node_count)) for name, variable in variables.items()
        ]
        self._role = role
        self._uid_start = f"{sum(role.encode()):08x}-{number:04x}-4000-8000-"
        self._index = 0

    def item(self, serial: int) -> Item:
        return self._object.item(self._values(serial, ""))

    def pod(self, serial: int, node: str, outcome: Outcome) -> PodItem:
        values = self._values(serial, node)
        return PodItem(
            self._object.raw(values), tuple(companion.item(values) for companion in self._companions), outcome
        )

    def _values(self, serial: int, node: str) -> Values:
        index = self._index
        self._index += 1
        values: dict[str, Value] = {
            "index": index,
            "serial": serial,
            "role": self._role,
            "uid": f"{self._uid_start}{index:012x}",
            "node": node,
        }
        for name, value_at in self._sequences:
            values[name] = value_at(index)
        return values


class _Encoded:
    """A template whose objects are encoded as JSON."""

    def __init__(self, manifest: Manifest, names: Sequence[str]) -> None:
        self._template = Template(manifest, names)
        self._kind = view_of(str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))

    def raw(self, values: Values) -> bytes:
        return _encode(self._template.fill(values))

    def item(self, values: Values) -> Item:
        return Item(self._kind, self.raw(values))


def node_name(node_count: int, serial: int, only_every: int = 1) -> str:
    """The node of the n-th placed pod."""
    eligible_count = max(1, node_count // only_every)
    return f"node-{(serial + serial // eligible_count) % eligible_count * only_every}"


def _turns(groups: Sequence[NodeGroup | PodGroup]) -> Iterator[int]:
    """Indices of the groups in turn, by share, for ever: 0, 0, 1 for shares 2 and 1."""
    return cycle([number for number, group in enumerate(groups) for _ in range(group.share)])
