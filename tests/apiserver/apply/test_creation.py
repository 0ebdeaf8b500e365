"""What a creator owns is the same, whether an object like his came before or not."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mooring.api.document import Document
from mooring.api.kinds import CONFIG_MAP, EVENT, JOB, POD, SERVICE, Kind
from mooring.api.schema.tables import struct_of_kind
from mooring.apiserver.access.users import User
from mooring.apiserver.apply.creation import place_of
from mooring.apiserver.apply.managers import UPDATE, manager_id
from mooring.apiserver.apply.shape import Shape
from mooring.apiserver.apply.struct_shape import struct_shape
from mooring.apiserver.apply.update import stamp, stamp_update
from mooring.apiserver.call import Call

NOW = "2026-01-01T00:00:00Z"
IGNORED = (("status",),)


def shape_of(kind: Kind) -> Shape:
    struct = struct_of_kind(kind.api_version, kind.kind)
    assert struct is not None
    return struct_shape(struct, kind.api_version, kind.kind)


def an(kind: Kind, metadata: Document | None = None, **parts: object) -> tuple[Kind, Document]:
    named = {"name": "n", "namespace": "s", **(metadata or {})}
    return kind, {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": named, **parts}


def with_variable(**parts: object) -> tuple[Kind, Document]:
    return an(POD, spec={"containers": [{"name": "c", "env": [{"name": "A", **parts}]}]})


PORTS = [{"port": 80, "protocol": "TCP"}, {"port": 443, "protocol": "TCP", "targetPort": 8443}]


@pytest.mark.parametrize(
    ("first", "second", "is_same_pattern"),
    [
        pytest.param(an(CONFIG_MAP, data={"a": "1"}), an(CONFIG_MAP, data={"a": "2"}), True, id="other values"),
        pytest.param(an(CONFIG_MAP, data={"a": "1"}), an(CONFIG_MAP, data={"b": "1"}), False, id="another key"),
        pytest.param(an(CONFIG_MAP, data={"a": "1"}), an(CONFIG_MAP, {"labels": {"x": "y"}}), False, id="labels"),
        pytest.param(an(CONFIG_MAP, data={"a": "1"}), an(CONFIG_MAP, data={"a": ""}), False, id="an empty value"),
        pytest.param(an(CONFIG_MAP, data={"a": "1"}), an(CONFIG_MAP, data={}), False, id="an empty map"),
        pytest.param(an(SERVICE, spec={"ports": PORTS}), an(SERVICE, spec={"ports": PORTS[:1]}), False, id="fewer"),
        pytest.param(an(SERVICE, spec={"ports": PORTS}), an(SERVICE, spec={"ports": []}), False, id="an empty list"),
        pytest.param(
            an(SERVICE, spec={"ports": PORTS[:1]}), an(SERVICE, spec={"ports": PORTS[:1] * 2}), False, id="one twice"
        ),
        pytest.param(
            an(SERVICE, spec={"clusterIPs": ["10.0.0.1"]}),
            an(SERVICE, spec={"clusterIPs": ["10.0.0.2", "10.0.0.3"]}),
            True,
            id="a list that is owned as a whole",
        ),
        pytest.param(
            an(EVENT, regarding={"name": "a"}, note="x"),
            an(EVENT, regarding={"name": "b"}, note="y"),
            True,
            id="events",
        ),
        pytest.param(
            an(POD, spec={"containers": None}), an(POD, spec={"containers": [{"name": "c"}]}), False, id="a null"
        ),
        pytest.param(with_variable(value="1"), with_variable(value="2"), True, id="a struct of single values"),
        pytest.param(with_variable(value="1"), with_variable(value=""), False, id="an empty one in a struct"),
        pytest.param(with_variable(value="1"), with_variable(), False, id="one less in a struct"),
        pytest.param(
            an(JOB, spec={"parallelism": 0}), an(JOB, spec={"parallelism": 3}, status={"active": 1}), False, id="a zero"
        ),
    ],
)
def test_known_or_not_the_creator_owns_the_same(
    first: tuple[Kind, Document], second: tuple[Kind, Document], is_same_pattern: bool
) -> None:
    kind = first[0]
    shape = shape_of(kind)
    call = Call("create", kind, User("u"), 0.0, NOW, field_manager="m")
    for _, made in (first, second, first, second):
        worked_out, found = deepcopy(made), deepcopy(made)
        stamp(shape, None, worked_out, manager_id("m", UPDATE, kind.api_version, ""), NOW, IGNORED)
        stamp_update(shape, None, found, call, IGNORED)
        assert found == worked_out
    places = [place_of(shape, made, IGNORED) for _, made in (first, second)]
    assert (places[0] == places[1]) is is_same_pattern


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(an(CONFIG_MAP, {"managedFields": []}), id="managers of its own"),
        pytest.param(an(CONFIG_MAP, data={f"k{number}": "" for number in range(600)}), id="a very large one"),
        pytest.param(an(POD, spec={"containers": [1]}), id="one that does not fit"),
    ],
)
def test_some_are_worked_out_each_time(made: tuple[Kind, Document]) -> None:
    assert place_of(shape_of(made[0]), made[1], IGNORED) is None
