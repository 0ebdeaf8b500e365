"""Label columns: codes for values, dictionaries that follow the rows."""

from __future__ import annotations

from mooring.scheduler.cache.labels import ABSENT, LabelColumn, LabelColumns


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


def test_a_column_that_is_asked_for_late_knows_all_rows() -> None:
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


def test_a_column_knows_whether_rows_share_a_value() -> None:
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
