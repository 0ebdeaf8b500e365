"""The cost of an evaluation, and its limit."""

from __future__ import annotations

import pytest

from mooring.api.cel import SelectorEvaluationError, compile_device_selector
from mooring.api.cel.checker import check
from mooring.api.cel.compiler import compile_tree
from mooring.api.cel.costs import COST_MAX, Meter, needs_meter
from mooring.api.cel.environment import DEVICE_ENVIRONMENT
from mooring.api.cel.errors import CelSource, CostExceeded
from mooring.api.cel.parser import parse
from mooring.api.cel.runtime import METER_SLOT
from tests.api.cel.builders import amount, device, version

A_GPU = device("dra.example.com", name=True, size=1, label="fish", v=version("1.0.0"), memory=amount("1Mi"))
ATTRIBUTES = 'device.attributes["dra.example.com"]'


def cost(expression: str) -> int:
    source = CelSource(expression)
    tree = parse(source)
    check(tree, source, DEVICE_ENVIRONMENT)
    assert not source.errors, source.error_report()
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
    source = CelSource(expression)
    tree = parse(source)
    check(tree, source, DEVICE_ENVIRONMENT)
    assert needs_meter(tree, len(expression)) is needs


def chained(first: str, step: str, count: int) -> str:
    """`[first].map(a, step).map(a, step)…`: each step works on the result of the one before."""
    return f"[{first}]" + f".map(a, {step})" * count


@pytest.mark.parametrize(
    "expression",
    [
        # a text of 1 GB and more
        "'aaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaa')" * 9 + " == ''",
        "'aaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaa', 1000000000)" * 9 + " == ''",
        "'aaaaaaaaaa'" + ".replace('', 'aaaaaaaaaa')" * 9 + " == ''",
        chained("'aaaaaaaaaa'", "a + a", 30) + " == []",
        chained("dyn('aaaaaaaaaa')", "a + a", 30) + " == []",
        chained("b'aaaaaaaaaa'", "a + a", 30) + " == []",
        chained("'aaaaaaaaaa'", "[a, a, a, a, a, a, a, a].join(a)", 12) + " == []",
        chained("'aaaaaaaaaa'", "'%s%s%s%s%s%s'.format([a, a, a, a, a, a])", 12) + " == []",
        "strings.quote(" * 60 + "'\"'" + ")" * 60 + " == ''",
        "'%.1000000000f'.format([1.5]) == ''",
        "'%." + "9" * 5_000 + "f'.format([1.5]) == ''",
        # a list or map with more elements than memory has room for, or that takes too long to walk
        chained("[1, 2, 3]", "a + a", 30) + " == []",
        chained("[1, 2, 3]", "[a, a, a, a, a, a]", 30) + ".flatten(40) == []",
        chained("[1, 2, 3]", "[a, a, a, a, a, a]", 30) + " == " + chained("[1, 2, 3]", "[a, a, a, a, a, a]", 30),
        "dyn([1]) in " + chained("[1, 2, 3]", "[a, a, a, a, a, a]", 30),
        "'%s'.format([" + chained("[1, 2, 3]", "[a, a, a, a, a, a]", 30) + "]) == ''",
        "'%s'.format([" + chained("{'a': 1}", "{'a': a, 'b': a, 'c': a}", 30) + "]) == ''",
        "sets.contains(lists.range(2000), lists.range(2000))",
        "lists.range(2000).distinct() == []",
        "lists.range(2000).sort() == []",
        "lists.range(100000000) == []",
        "lists.range(100000).all(i, lists.range(10000).exists(j, true))",
        # a pattern that is small and expensive
        "lists.range(10000).all(i, !('ab'" + ".replace('b', 'bbbbbbbbbb')" * 3 + ").matches('b.{900}c'))",
        "('a'" + ".replace('a', 'aaaaaaaaaa')" * 5 + ").findAll('a.*b|a') == []",
    ],
)
def test_an_evaluation_ends_before_it_takes_too_much_memory_or_time(expression: str) -> None:
    with pytest.raises(SelectorEvaluationError, match="operation cancelled: actual cost limit exceeded"):
        compile_device_selector(expression).matches(A_GPU)


def test_a_large_map_is_built_and_read_in_linear_time() -> None:
    entries = "lists.range(30000).transformMap(i, v, i)"
    assert compile_device_selector(f"{entries}.size() == 30000").matches(A_GPU)


def test_keys_that_python_takes_for_equal_are_different() -> None:
    assert compile_device_selector("!(dyn(true) in {1: 2}) && !(dyn(0) in {dyn(false): 2})").matches(A_GPU)
    assert compile_device_selector("1 in {1: 2} && true in {true: 2} && dyn(1.0) in {1: 2}").matches(A_GPU)


def test_the_limit() -> None:
    meter = Meter()
    meter.charge(COST_MAX)
    with pytest.raises(CostExceeded, match="operation cancelled: actual cost limit exceeded"):
        meter.charge(1)
