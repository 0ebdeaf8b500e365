"""The logical state of columns: plain values by name (of nodes, resources, labels, claims), never by row, index or
code.

Columns of the same cluster have the same logical state, whatever the order of events, the free rows, the gaps in
dictionaries, and the counters that were requested.
"""

from __future__ import annotations

import numpy as np

from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.nodes import ABSENT, LabelColumn
from mooring.scheduler.cache.resources import ANY_ADDRESS, HostPort
from mooring.scheduler.cache.selectors import ExistingTerm, MatchCounter, PodSelector
from mooring.scheduler.cache.volumes import disks_of
from tests.builders import disk, host_port
from tests.scheduler.random_history import CountedFor
from tests.scheduler.random_world import APPS, CLAIMS, DISKS, NAMESPACES, PORTS, TOPOLOGIES

State = dict[str, object]

_LABEL_KEYS = (*TOPOLOGIES, "disk")
_LABEL_SETS = ({}, *({"app": app} for app in APPS), *({"app": app, "tier": "x"} for app in APPS))


def logical_state(columns: Columns, counted: tuple[CountedFor, ...] = ()) -> State:
    """Everything that the columns say, and what the counters for these conditions have counted."""
    _assert_that_free_rows_are_clean(columns)
    return {
        "nodes": {name: _node(columns, row) for name, row in _rows(columns).items()},
        "labels": {key: _labels(columns, columns.labels.column(key)) for key in _LABEL_KEYS},
        "images": {
            name: (holders.size_bytes, {columns.node_names[row] for row in holders.rows})
            for name, holders in columns.images.holders.items()
        },
        "ports": {text: _port_conflicts(columns, text) for text in PORTS},
        "classes": _classes(columns),
        "counters": [_counter(columns, *condition) for condition in counted],
        "terms": dict(filter(None, (_term(term) for term in columns.terms))),
        "terms spoken of": _terms_by_listener(columns),
        "claims": {claim: _by_name(columns, columns.volumes.users_of(claim)) for claim in _claim_keys()},
        "disks": {name: _disk_conflicts(columns, name) for name in DISKS},
        "pods": {uid: pod.node_name for uid, pod in columns.pods.items()},
        "nominations": {
            name: [pod.uid for pod in columns.nominations.on(name)] for name in columns.nominations.nodes()
        },
    }


def _rows(columns: Columns) -> dict[str, int]:
    rows = dict(columns.row_of)
    assert sorted(rows.values()) == np.arange(columns.height)[columns.live_rows].tolist(), "a live row without a name"
    assert columns.node_count == len(rows), f"{columns.node_count} nodes are counted, {len(rows)} are there"
    return rows


def _node(columns: Columns, row: int) -> State:
    resources = columns.resources
    pods = columns.pods_on[row]
    assert all(pod.row == row and pod.node_name == columns.node_names[row] for pod in pods.values()), f"row {row}"
    return {
        "allocatable": {name: n for name, n in zip(resources.names, resources.allocatable[:, row].tolist()) if n},
        "used": {name: n for name, n in zip(resources.names, resources.used[:, row].tolist()) if n},
        "taints": [(t.key, t.value, t.effect) for t in columns.taints.sets[columns.taints.set_of_row[row]]],
        "unschedulable": bool(columns.unschedulable[row]),
        "lowest priority": int(columns.priority_lowest[row]),
        "pods": set(pods),
    }


def _labels(columns: Columns, column: LabelColumn) -> dict[str, str]:
    found = {}
    for name, row in columns.row_of.items():
        code = int(column.codes[row])
        value = column.values[code]
        if code != ABSENT:
            assert value is not None, f"{column.key}: code {code} means nothing"
            assert column.code_for(value) == code, f"{column.key}: {value!r} has two codes"
            found[name] = value
    carried = {value for value in column.values if value is not None}
    assert carried == set(found.values()), f"{column.key}: {carried} are known, {set(found.values())} are carried"
    return found


def _port_conflicts(columns: Columns, text: str) -> set[str]:
    port = host_port(text)
    wanted = (HostPort(port.protocol or "TCP", port.host_port, port.host_ip or ANY_ADDRESS),)
    conflicts = columns.ports.conflicts(wanted, columns.height)
    for row in range(columns.height):
        assert columns.ports.conflicts_at(wanted, row) == conflicts[row], f"{text} on row {row}"
    return {name for name, row in columns.row_of.items() if conflicts[row]}


def _classes(columns: Columns) -> State:
    return {
        f"{pod_class.namespace} {sorted(pod_class.labels.items())}": (
            _by_name(columns, pod_class.rows),
            _by_name(columns, pod_class.rows_terminating),
        )
        for pod_class in columns.selectors.classes
        if pod_class.rows
    }


def _counter(columns: Columns, parts: tuple[PodSelector, ...], counts_terminating: bool) -> State:
    counter = columns.selectors.counter(parts, counts_terminating)
    counted = {name: int(counter.rows[row]) for name, row in columns.row_of.items() if counter.rows[row]}
    return {
        "condition": [(sorted(part.namespaces or ()), str(part.selector)) for part in parts],
        "rows": counted,
        **{key: _domains(columns, counter, columns.labels.column(key)) for key in TOPOLOGIES},
    }


def _domains(columns: Columns, counter: MatchCounter, column: LabelColumn) -> dict[str | None, int]:
    counts = counter.domains(column, columns.height)
    return {column.values[code]: int(counts[code]) for code in range(column.codes_max) if counts[code]}


def _term(term: ExistingTerm) -> tuple[str, object] | None:
    values = term.column.values
    domains = {values[code]: int(count) for code, count in enumerate(term.domain_counts()) if count}
    assert sum(domains.values()) == term.pod_count, f"{term.term.key}: {domains}, but {term.pod_count} pods"
    return (_name_of(term), domains) if domains else None


def _terms_by_listener(columns: Columns) -> State:
    return {
        f"{namespace} {labels}": sorted(
            _name_of(term) for term in columns.selectors.label_class(namespace, labels).terms if term.pod_count
        )
        for namespace in NAMESPACES
        for labels in _LABEL_SETS
    }


def _name_of(term: ExistingTerm) -> str:
    said = term.term
    return (
        f"{term.kind.value} {term.weight} {sorted(said.namespaces)} {said.namespace_selector!r} {said.selector!r} "
        f"by {said.topology_key}"
    )


def _disk_conflicts(columns: Columns, name: str) -> State:
    return {
        f"read only: {read_only}": _by_name(
            columns, columns.volumes.conflicting_pods(disks_of([disk(name, read_only=read_only)]))
        )
        for read_only in (False, True)
    }


def _claim_keys() -> list[str]:
    return [f"{namespace}/{claim}" for namespace in NAMESPACES for claim in CLAIMS]


def _by_name(columns: Columns, counts: object) -> dict[str, int]:
    assert isinstance(counts, dict)
    return {columns.node_names[row]: count for row, count in counts.items()}


def _assert_that_free_rows_are_clean(columns: Columns) -> None:
    """Rows that belong to nobody must not be seen by anybody who sums over all rows."""
    dead = ~columns.alive[: columns.height]
    for name, line in zip(columns.resources.names, columns.resources.used):
        assert not line[: columns.height][dead].any(), f"{name} is used on a row without a node"
    for counter in columns.selectors.counters:
        assert not counter.rows[: columns.height][dead[: len(counter.rows)]].any(), "a pod on a row without a node"
