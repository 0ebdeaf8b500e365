"""Device selectors: matching devices, errors of evaluation, errors of compilation."""

from __future__ import annotations

import pytest

from mooring.api.cel import CelDevice, SelectorEvaluationError, compile_device_selector
from mooring.api.cel.selector import CACHED_CHARACTERS_MAX, _selectors
from mooring.api.views.devices import DeviceAttribute
from tests.api.cel.builders import amount, answer, compile_error, device, runtime_error, version

A_GPU = device(
    model="a100",
    numa=1,
    ecc=True,
    driverVersion=version("1.2.3"),
    memory=amount("80Gi"),
    cores=amount("108"),
    slices=amount("500m"),
    named={"gpu.example.com/link": "nvlink", "topology.example.com/rack": "r7"},
)

GPU = 'device.attributes["gpu.example.com"]'
CAPACITY = 'device.capacity["gpu.example.com"]'


@pytest.mark.parametrize(
    ("expression", "suits"),
    [
        ("true", True),
        ("false", False),
        ('device.driver == "gpu.example.com"', True),
        ('device.driver == "nic.example.com"', False),
        ("device.allowMultipleAllocations == false", True),
        ("device.allowMultipleAllocations", False),
        ("has(device.driver)", True),
        (f"{GPU}.ecc", True),
        (f'{GPU}["ecc"]', True),
        (f'{GPU}.model == "a100"', True),
        (f'{GPU}.model != "a100"', False),
        (f'{GPU}.model in ["a100", "h100"]', True),
        (f'{GPU}.model in ["l4", "h100"]', False),
        (f"{GPU}.numa > 0 && {GPU}.numa <= 1", True),
        (f"{GPU}.numa == 1.0", True),
        (f"{GPU}.numa < 1.5", True),
        (f"{GPU}.numa >= 2u", False),
        (f'{GPU}.link == "nvlink"', True),
        ('device.attributes["topology.example.com"].rack.endsWith("7")', True),
        (f'"link" in {GPU} && {GPU}.link == "nvlink"', True),
        ('"link" in device.attributes["other.example.com"]', False),
        ('"other.example.com" in device.attributes', False),
        ('"topology.example.com" in device.attributes', True),
        (f"has({GPU}.model)", True),
        (f"has({GPU}.nothing)", False),
        ('has(device.attributes["other.example.com"].nothing)', False),
        (f"has({GPU}.link) ? {GPU}.numa == 1 : false", True),
        (f'{GPU}.model.startsWith("h") || {GPU}.model.matches("^a[0-9]+$")', True),
        (f'{GPU}.driverVersion.isGreaterThan(semver("1.0.0"))', True),
        (f'{GPU}.driverVersion.compareTo(semver("1.2.3")) == 0', True),
        (f'{GPU}.driverVersion == semver("1.2.3+build")', True),
        (f'{GPU}.driverVersion != "1.2.3"', True),
        (f'"1.2.3" == {GPU}.driverVersion', False),
        (f'{CAPACITY}.memory.compareTo(quantity("40Gi")) >= 0', True),
        (f'{CAPACITY}.memory.isGreaterThan(quantity("80Gi"))', False),
        (f'{CAPACITY}.memory == quantity("81920Mi")', True),
        (f"{CAPACITY}.cores.asInteger() > 64", True),
        (f'"memory" in {CAPACITY}', True),
        (f'cel.bind(m, {CAPACITY}.memory, m.compareTo(quantity("80Gi")) <= 0 && sign(m) == 1)', True),
        (f"cel.bind(unused, {GPU}.nothing, true)", True),
        (f"cel.bind(gpu, {GPU}, gpu.ecc && gpu.numa == 1)", True),
        (f'{GPU}.?nothing.orValue("x") == "x"', True),
        (f'{GPU}.?model.orValue("x") == "a100"', True),
        (f'{GPU}[?"model"].hasValue()', True),
        (f'{GPU}.exists(name, name == "model")', True),
        (f"{GPU}.all(name, name.size() > 10)", False),
        (f'{GPU}.exists_one(name, name.startsWith("driver"))', True),
        ('device.attributes.exists(domain, domain == "topology.example.com")', True),
        (f'{GPU}.exists(name, value, name == "numa" && value == 1)', True),
        (f'{CAPACITY}.transformList(name, value, value.compareTo(quantity("50Gi")) > 0, name) == ["memory"]', True),
        (f'{GPU}.filter(name, name == "ecc").size() == 1', True),
        ('sets.contains(["a100", "h100"], [string(dyn("a100"))])', True),
        (f'false && {GPU}.nothing == "x"', False),
        (f'{GPU}.nothing == "x" && false', False),
        (f'{GPU}.nothing == "x" || true', True),
        (f'{GPU}.nothing == "x" || {GPU}.ecc || {GPU}.other', True),
        (f"dyn([{GPU}.model]).exists(m, m.bad || m == 'a100')", True),
    ],
)
def test_selectors_match_devices(expression: str, suits: bool) -> None:
    assert answer(expression, A_GPU) is suits


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f'{GPU}.missing == "x"', "no such key: missing"),
        (f'{GPU}["missing"] == "x"', "no such key: missing"),
        ('device.attributes["other.example.com"].x', "no such key: x"),
        ('device.capacity["other.example.com"].x.asInteger() == 1', "no such key: x"),
        (f"true && {GPU}.first == 1 && {GPU}.second == 2", "no such key: first"),
        (f"{GPU}.model > 3", "no such overload"),
        (f"{GPU}.driverVersion > 3", "no such overload: _>_"),
        (f"{GPU}.ecc + 1 == 2", "no such overload: _+_"),
        (f"{GPU}.model - 1 == 2", "no such overload"),
        (f"!{GPU}.model", "no such overload"),
        (f"{GPU}.model && true", "no such overload"),
        (f"{GPU}.model ? true : false", "no such overload"),
        (f'{GPU}.numa.startsWith("x")', "no such overload"),
        (f'{GPU}.numa.lowerAscii() == "x"', "no such overload: lowerAscii(int)"),
        (f'{GPU}.model.isGreaterThan(semver("1.0.0"))', "no such overload: isGreaterThan(string, kubernetes.Semver)"),
        (f'{GPU}.numa.matches("1")', "no such overload: matches"),
        (f'{GPU}.driverVersion == "1.2.3"', "no such overload"),
        (f'{CAPACITY}.memory == quantity("1").add(quantity("1"))', "no such overload"),
        (f"{CAPACITY}.slices.asInteger() == 1", "cannot convert value to integer"),
        (
            'quantity("12 apples").asInteger() == 1',
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        ('quantity("12KK").asInteger() == 1', "unable to parse quantity's suffix"),
        ('semver("1.2") == semver("1.2.0")', "No Major.Minor.Patch elements found"),
        ("size(dyn(1)) == 1", "no such overload: size"),
        (f"{GPU}.numa / 0 == 1", "division by zero"),
        (f"{GPU}.numa % 0 == 1", "modulus by zero"),
        (f"{GPU}.numa + 9223372036854775807 == 1", "integer overflow"),
        ('"a" in dyn(1)', "no such overload"),
        ("[1, 2][dyn(5)] == 1", "index out of bounds: 5"),
        ('dyn([1])["a"] == 1', "unsupported index type 'string' in list"),
        (f"dyn({GPU}.numa).all(x, x > 0)", "got 'types.Int', expected iterable type"),
        (f"dyn({GPU}.driverVersion).all(x, x > 0)", "got 'cel.Semver', expected iterable type"),
        (f"dyn({GPU}.model).all(i, x, x > 0)", "unsupported comprehension range type: types.String"),
        (f"{GPU}.?nothing.value() == 1", "optional.none() dereference"),
        (
            f"{GPU}.model",
            "CEL result of type string could not be converted to bool: "
            "unsupported native conversion from string to 'bool'",
        ),
        (
            f"{GPU}.numa",
            "CEL result of type int could not be converted to bool: unsupported type conversion from 'int' to bool",
        ),
        (
            f"{GPU}.driverVersion",
            "CEL result of type kubernetes.Semver could not be converted to bool: "
            "type conversion error from 'Semver' to 'bool'",
        ),
        ("lists.range(2000000).exists(x, x == 1)", "operation cancelled: actual cost limit exceeded"),
    ],
)
def test_selectors_that_fail_for_a_device(expression: str, text: str) -> None:
    assert runtime_error(expression, A_GPU) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        ('"a"', "must evaluate to bool or the unknown type, not string"),
        ("dyn(true)", "must evaluate to bool or the unknown type, not dyn"),
        ("[true]", "must evaluate to bool or the unknown type, not list(bool)"),
        ("device", "must evaluate to bool or the unknown type, not kubernetes.DRADevice"),
        (CAPACITY, "must evaluate to bool or the unknown type, not map(string, kubernetes.Quantity)"),
        (f"{GPU}.a.b", "must evaluate to bool or the unknown type, not dyn"),
        (f"{GPU}.?a", "must evaluate to bool or the unknown type, not optional_type(google.protobuf.Any)"),
        (
            'device.drivr == "x"',
            "compilation failed: ERROR: <input>:1:7: undefined field 'drivr'\n | device.drivr == \"x\"\n | ......^",
        ),
        (
            "?!",
            "compilation failed: ERROR: <input>:1:1: Syntax error: unexpected '?', expected an expression\n | ?!\n | ^",
        ),
        ('int("x") == 1', "program instantiation failed: type conversion error from 'string' to 'int'"),
        (
            '"x".find("[") == ""',
            "program instantiation failed: error parsing regexp: missing closing ]: `[`",
        ),
        ("(" * 300, "compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250"),
    ],
)
def test_selectors_that_do_not_compile(expression: str, text: str) -> None:
    assert compile_error(expression) == text


def test_an_invalid_attribute_fails_every_expression() -> None:
    broken = CelDevice("gpu.example.com", {"empty": DeviceAttribute(), "v": DeviceAttribute(version="x")}, {})
    assert runtime_error("true", broken) == "attribute empty: unsupported attribute value"
    broken = CelDevice("gpu.example.com", {"v": DeviceAttribute(version="1.02.3")}, {})
    assert runtime_error("true", broken) == (
        'attribute v: parse semantic version: Minor number must not contain leading zeroes "02"'
    )


def test_allow_multiple_allocations_of_a_device() -> None:
    assert answer("device.allowMultipleAllocations", device(allow_multiple_allocations=True))


def test_names_without_a_domain_belong_to_the_driver() -> None:
    nic = device("nic.example.com", speed=100, named={"other.example.com/speed": 1})
    assert answer('device.attributes["nic.example.com"].speed == 100', nic)
    assert answer('device.attributes["other.example.com"].speed == 1', nic)


def test_compiled_expressions_are_cached_up_to_a_total_length() -> None:
    assert compile_device_selector("1 < 2") is compile_device_selector("1 < 2")
    padding = " " * (CACHED_CHARACTERS_MAX // 10)
    for number in range(20):
        compile_device_selector(f"{number} == {number}{padding}")
        assert sum(map(len, _selectors.entries)) == _selectors.size <= CACHED_CHARACTERS_MAX
        assert len(_selectors.entries) >= 1


def test_a_selector_works_after_another_one_failed() -> None:
    selector = compile_device_selector('device.attributes["gpu.example.com"].exists(name, value, value == 2)')
    with pytest.raises(SelectorEvaluationError):
        compile_device_selector("size(dyn(1)) == 1").matches(device())
    assert not selector.matches(device(a=1))
    assert selector.matches(device(a=1, b=2))
