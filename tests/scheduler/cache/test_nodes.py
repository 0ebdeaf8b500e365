"""Columns of nodes: labels, taints, images."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from mooring.api.nodeselector import compile_preferred, preferred_node_affinity, required_node_affinity
from mooring.api.views.node import ContainerImage, Node
from mooring.api.views.pod import Pod
from mooring.scheduler.cache import nodes
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.nodes import ABSENT, ImageColumns, LabelColumn, LabelColumns, TaintColumns
from tests.api.builders import node_selector, preferred, taint, term
from tests.builders import ZONE, node, pod

# --- Label columns: codes for values, dictionaries that follow the rows


def test_equal_values_share_a_code_and_absence_is_zero() -> None:
    column = LabelColumn("zone", 8)
    for row, value in enumerate(["a", "b", "a", None]):
        column.set(row, value)
    assert column.codes[0] == column.codes[2] != column.codes[1]
    assert column.codes[3] == ABSENT
    assert [column.values[code] for code in column.codes[:4]] == ["a", "b", "a", None]
    assert column.code_for("b") == column.codes[1]
    assert column.code_for("c") is None


def test_an_empty_value_is_not_absence() -> None:
    column = LabelColumn("zone", 8)
    column.set(0, "")
    assert column.codes[0] != ABSENT
    assert column.code_for("") == column.codes[0]


def test_an_unused_value_frees_its_code() -> None:
    column = LabelColumn("host", 8)
    column.set(0, "a")
    column.set(1, "b")
    freed = column.codes[0]
    column.set(0, None)
    assert column.code_for("a") is None
    column.set(2, "c")
    assert column.codes[2] == freed, "codes come back, so that churn does not make dictionaries grow"
    assert column.codes_max == 3


def test_the_version_reports_of_changes_of_the_dictionary_only() -> None:
    column = LabelColumn("zone", 8)
    column.set(0, "a")
    known = column.version
    column.set(1, "a")
    column.set(1, "a")
    assert column.version == known
    column.set(1, "b")
    assert column.version > known
    known = column.version
    column.set(1, "a")
    assert column.version > known, "nobody carries b any more"


def test_expressions_are_evaluated_for_each_code() -> None:
    column = LabelColumn("zone", 8)
    for row, value in enumerate(["a", "b", "c"]):
        column.set(row, value)
    rows = column.codes[:4]
    assert column.evaluate(lambda value: value > "a", matches_absent=True)[rows].tolist() == [False, True, True, True]
    assert column.evaluate_in(["a", "x"], negated=False)[rows].tolist() == [True, False, False, False]
    assert column.evaluate_in(["a", "x"], negated=True)[rows].tolist() == [False, True, True, True]


def test_a_label_column_created_late_has_all_rows() -> None:
    labels = LabelColumns(8)
    labels.set(0, {"zone": "a", "host": "n0"})
    labels.set(1, {"host": "n1"})
    labels.set(2, {"zone": "b"})
    labels.clear(2)
    zone = labels.column("zone")
    assert [zone.values[code] for code in zone.codes[:3]] == ["a", None, None]
    assert labels.column("zone") is zone
    assert list(labels) == [zone], "keys that nobody asks about cost nothing"


def test_columns_follow_a_node_that_changes() -> None:
    labels = LabelColumns(8)
    zone, host = labels.column("zone"), labels.column("host")
    labels.set(0, {"zone": "a", "host": "n0"})
    assert labels.changed_columns(0, {"zone": "b", "host": "n0"}) == [zone]
    assert labels.changed_columns(0, {"zone": "a"}) == [host]
    labels.set(0, {"zone": "b"})
    assert (zone.values[zone.codes[0]], host.values[host.codes[0]]) == ("b", None)
    assert labels.of(0) == {"zone": "b"}
    assert labels.of(1) == {}


def test_is_unique_is_false_while_rows_share_a_value() -> None:
    labels = LabelColumns(8)
    host = labels.column("host")
    seen = [host.is_unique]
    for row, value in enumerate(("n0", "n1", "n0", "n0")):
        labels.set(row, {"host": value})
    seen.append(host.is_unique)
    labels.set(2, {"host": "n2"})
    seen.append(host.is_unique)
    labels.set(3, {})
    seen.append(host.is_unique)
    assert seen == [True, False, False, True], "no rows, three share one, two are left, no rows share"


def test_columns_grow_with_the_table() -> None:
    labels = LabelColumns(2)
    zone = labels.column("zone")
    labels.grow(100)
    labels.set(99, {"zone": "z", "rack": "r"})
    assert zone.values[zone.codes[99]] == "z"
    assert len(labels.column("rack").codes) >= 100


# --- Nodes by selector: columns answer for all rows what the compiled selector says of each node


NODES = (
    node("n1", zone="a", labels={"disk": "ssd", "cores": "16"}),
    node("n2", zone="b", labels={"disk": "hdd", "cores": "8"}),
    node("n3", zone="c", labels={"disk": "ssd"}),
    node("n4", labels={"cores": "many"}),
)


def columns_of(*views: Node) -> Columns:
    columns = Columns()
    for view in views:
        columns.put_node(view)
    return columns


def matching(columns: Columns, wanting: Pod) -> list[str]:
    """The nodes that match; asked in three ways, which must agree."""
    affinity = required_node_affinity(wanting)
    rows = np.arange(columns.height)
    together = columns.node_selection.required(affinity, rows)
    assert columns.node_selection.required(affinity, slice(0, columns.height)).tolist() == together.tolist()
    assert [columns.node_selection.required(affinity, rows[row : row + 1])[0] for row in rows] == together.tolist()
    return [columns.node_names[row] for row in np.flatnonzero(together)]


@pytest.mark.parametrize(
    ("wanting", "names"),
    [
        pytest.param(pod(), ["n1", "n2", "n3", "n4"], id="no wishes"),
        pytest.param(pod(node_labels={"disk": "ssd"}), ["n1", "n3"], id="a label"),
        pytest.param(pod(node_labels={"disk": "ssd", ZONE: "a"}), ["n1"], id="two labels"),
        pytest.param(pod(node_labels={"disk": "tape"}), [], id="a value that no node has"),
        pytest.param(pod(node_labels={"planet": "mars"}), [], id="a key that no node has"),
        pytest.param(pod(nodes=node_selector(term(f"{ZONE} In a,b"))), ["n1", "n2"], id="one of two values"),
        pytest.param(pod(nodes=node_selector(term(f"{ZONE} In a,b,c,d"))), ["n1", "n2", "n3"], id="one of many"),
        pytest.param(pod(nodes=node_selector(term("disk NotIn ssd"))), ["n2", "n4"], id="not in: absence is fine"),
        pytest.param(
            pod(nodes=node_selector(term(f"{ZONE} NotIn a,b,d,e"))), ["n3", "n4"], id="not in many: absence is fine"
        ),
        pytest.param(pod(nodes=node_selector(term("disk Exists"))), ["n1", "n2", "n3"], id="exists"),
        pytest.param(pod(nodes=node_selector(term("disk DoesNotExist"))), ["n4"], id="does not exist"),
        pytest.param(pod(nodes=node_selector(term("cores Gt 8"))), ["n1"], id="more than, where it is a number"),
        pytest.param(pod(nodes=node_selector(term("cores Lt 16"))), ["n2"], id="less than"),
        pytest.param(
            pod(nodes=node_selector(term("disk In ssd", f"{ZONE} In c"), term("cores In 8"))), ["n2", "n3"], id="terms"
        ),
        pytest.param(pod(nodes=node_selector(term())), [], id="an empty term matches nothing"),
        pytest.param(pod(nodes=node_selector()), [], id="no terms match nothing"),
        pytest.param(pod(nodes=node_selector(term(fields=["metadata.name In n2"]))), ["n2"], id="by name"),
        pytest.param(
            pod(nodes=node_selector(term(fields=["metadata.name NotIn n2"]))), ["n1", "n3", "n4"], id="not by name"
        ),
        pytest.param(pod(nodes=node_selector(term(fields=["metadata.name In n9"]))), [], id="by the name of nobody"),
        pytest.param(
            pod(node_labels={"disk": "ssd"}, nodes=node_selector(term(f"{ZONE} In c"))), ["n3"], id="selector and terms"
        ),
        pytest.param(pod(nodes=node_selector(term("disk Maybe"), term("cores In 8"))), ["n2"], id="a term in error"),
    ],
)
def test_nodes_that_match(wanting: Pod, names: list[str]) -> None:
    assert matching(columns_of(*NODES), wanting) == names


def test_preferences_add_up() -> None:
    columns = columns_of(*NODES)
    terms = preferred_node_affinity(
        pod(prefers_nodes=[preferred(5, "disk In ssd"), preferred(7, f"{ZONE} In a"), preferred(-2, "cores Exists")])
    )
    assert columns.node_selection.preference(terms, slice(0, 4)).tolist() == [10, -2, 5, -2]
    assert columns.node_selection.preference(compile_preferred(()), slice(0, 4)).tolist() == [0, 0, 0, 0]


def test_evaluated_requirements_follow_changed_nodes() -> None:
    columns = columns_of(*NODES)
    wanting = pod(nodes=node_selector(term("cores Gt 8")))
    assert matching(columns, wanting) == ["n1"]
    columns.put_node(node("n2", labels={"cores": "32"}))
    columns.put_node(node("n1", labels={"cores": "4"}))
    assert matching(columns, wanting) == ["n2"]
    columns.remove_node("n2")
    columns.put_node(node("n9", labels={"cores": "9"}))
    assert matching(columns, wanting) == ["n9"]


def test_more_requirements_than_the_cache_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "EVALUATIONS_MAX", 2)
    columns = columns_of(*NODES)
    for _ in range(2):
        for least, names in ((0, ["n1", "n2"]), (8, ["n1"]), (16, []), (15, ["n1"])):
            assert matching(columns, pod(nodes=node_selector(term(f"cores Gt {least}")))) == names


GPU, OLD = taint("gpu=true:NoSchedule"), taint("old:NoExecute")


def test_rows_with_the_same_taints_share_a_set() -> None:
    taints = TaintColumns(8)
    taints.set(0, [GPU, OLD])
    taints.set(1, [replace(GPU, time_added="2024-01-01T00:00:00Z"), OLD])
    taints.set(2, [OLD])
    assert taints.set_of_row[0] == taints.set_of_row[1] != taints.set_of_row[2]
    assert taints.sets[taints.set_of_row[2]] == (OLD,)


def test_the_order_of_taints_makes_a_difference() -> None:
    taints = TaintColumns(8)
    taints.set(0, [GPU, OLD])
    taints.set(1, [OLD, GPU])
    assert taints.set_of_row[0] != taints.set_of_row[1], "the first untolerated taint is the one that is reported"


def test_no_taints_are_set_zero() -> None:
    taints = TaintColumns(8)
    taints.set(0, [GPU])
    taints.set(0, [])
    taints.set(1, [GPU])
    taints.clear(1)
    assert taints.set_of_row[:3].tolist() == [0, 0, 0]


def test_each_distinct_set_is_evaluated_once() -> None:
    taints = TaintColumns(8)
    for row in range(6):
        taints.set(row, [GPU] if row % 2 else [])
    evaluated = []

    def count(found: tuple[object, ...]) -> int:
        evaluated.append(found)
        return len(found)

    values = taints.evaluate(count, np.int64)
    assert values[taints.set_of_row[:6]].tolist() == [0, 1, 0, 1, 0, 1]
    assert evaluated == [(), (GPU,)]


def image(size: int, *names: str) -> ContainerImage:
    return ContainerImage(names=names, size_bytes=size)


def held(images: ImageColumns) -> dict[str, tuple[int, list[int]]]:
    return {name: (holders.size_bytes, sorted(holders.rows)) for name, holders in images.holders.items()}


def test_an_image_is_known_by_all_its_names() -> None:
    images = ImageColumns()
    images.set(3, [image(10, "web:1", "web@sha256:abc"), image(20, "db:1")])
    assert held(images) == {"web:1": (10, [3]), "web@sha256:abc": (10, [3]), "db:1": (20, [3])}


def test_an_image_has_the_size_that_the_first_node_reported() -> None:
    images = ImageColumns()
    images.set(0, [image(10, "web:1")])
    images.set(1, [image(99, "web:1")])
    assert held(images) == {"web:1": (10, [0, 1])}
    images.clear(0)
    assert held(images) == {"web:1": (10, [1])}, "while any node holds it"
    images.clear(1)
    images.set(2, [image(99, "web:1")])
    assert held(images) == {"web:1": (99, [2])}


def test_a_node_that_drops_an_image_holds_it_no_longer() -> None:
    images = ImageColumns()
    images.set(0, [image(10, "web:1"), image(20, "db:1")])
    images.set(0, [image(20, "db:1")])
    assert held(images) == {"db:1": (20, [0])}


def test_the_version_changes_with_the_holders_only() -> None:
    images = ImageColumns()
    images.set(0, [])
    images.clear(0)
    assert images.version == 0
    images.set(0, [image(10, "web:1")])
    known = images.version
    images.set(0, [image(10, "web:1")])
    assert images.version == known, "most updates of a node are heartbeats"
    images.set(1, [image(10, "web:1")])
    assert images.version > known
    known = images.version
    images.clear(1)
    assert images.version > known
