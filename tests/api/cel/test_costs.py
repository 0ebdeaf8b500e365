"""Costs: what Kubernetes counts for an expression, and when it has had enough."""

from __future__ import annotations

import pytest

from mooring.api.cel.checker import check
from mooring.api.cel.compiler import compile_tree
from mooring.api.cel.costs import COST_MAX, Meter, needs_meter
from mooring.api.cel.environment import DEVICE_ENVIRONMENT
from mooring.api.cel.errors import CostExceeded
from mooring.api.cel.frames import METER_SLOT
from mooring.api.cel.parser import parse
from mooring.api.cel.source import Source
from tests.api.cel.builders import amount, device, version

A_GPU = device("dra.example.com", name=True, size=1, label="fish", v=version("1.0.0"), memory=amount("1Mi"))
ATTRIBUTES = 'device.attributes["dra.example.com"]'


def cost(expression: str) -> int:
    source = Source(expression)
    tree = parse(source)
    check(tree, source, DEVICE_ENVIRONMENT)
    assert not source.faults, source.shown_faults()
    program = compile_tree(tree, DEVICE_ENVIRONMENT, is_metered=True)
    meter = Meter()
    frame: list[object] = [None] * program.slot_count
    frame[0], frame[METER_SLOT] = A_GPU.fields, meter
    program.run(frame)
    return meter.spent


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", 0),
        ('"no-such-domain" in device.attributes', 3),
        ('device.driver == "dra.example.com"', 4),
        (f"{ATTRIBUTES}.name", 4),
        (f'{ATTRIBUTES}["name"]', 4),
        (f"{ATTRIBUTES}.size > 0", 5),
        (f'{ATTRIBUTES}.label == "fish"', 5),
        (f'{ATTRIBUTES}.v.isGreaterThan(semver("0.0.1"))', 6),
        ('device.capacity["dra.example.com"].memory.isGreaterThan(quantity("1Ki"))', 6),
        (f"{ATTRIBUTES}.name && {ATTRIBUTES}.name && {ATTRIBUTES}.name", 12),
        ("device.allowMultipleAllocations == true", 3),
        (f"has({ATTRIBUTES}.name)", 3),
        ("1 in [1, 2, 3]", 0),
        ("[1, 2].all(x, x > 0)", 11),
        (f'"x" + {ATTRIBUTES}.label == "xfish"', 6),
    ],
)
def test_what_an_expression_costs(expression: str, expected: int) -> None:
    assert cost(expression) == expected


@pytest.mark.parametrize(
    ("expression", "needs"),
    [
        (f"{ATTRIBUTES}.size > 0 && {ATTRIBUTES}.size + 1 < 3 || true", False),
        (f"{ATTRIBUTES}.name", False),
        ("1 + 2 == 3", False),
        ('"a" + "b" == "c"', True),
        ("[1].all(x, x > 0)", True),
        ("cel.bind(a, 1, a == 1)", False),
        ('"a".replace("a", "b") == "b"', True),
    ],
)
def test_which_expressions_are_metered(expression: str, needs: bool) -> None:
    source = Source(expression)
    tree = parse(source)
    check(tree, source, DEVICE_ENVIRONMENT)
    assert needs_meter(tree, len(expression)) is needs


def test_enough_is_enough() -> None:
    meter = Meter()
    meter.charge(COST_MAX)
    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        meter.charge(1)
