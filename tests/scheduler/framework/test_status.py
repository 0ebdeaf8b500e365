"""Status: made of reason bits, with the most severe code among the reasons."""

from __future__ import annotations

import pytest

from mooring.scheduler.framework.status import Code, Reason, Status, code_of, status_of

CPU, MEMORY = Reason("Insufficient cpu"), Reason("Insufficient memory")
NEVER, SILENT = Reason("node(s) were unschedulable", Code.UNRESOLVABLE), Reason(None, Code.UNRESOLVABLE)
BROKEN, WORSE = Reason("looking up x: not found", Code.ERROR), Reason("out of luck", Code.ERROR)


@pytest.mark.parametrize(
    ("bits", "reasons", "code", "said"),
    [
        pytest.param(0b01, [CPU, MEMORY], Code.UNSCHEDULABLE, ["Insufficient cpu"], id="one bit is one reason"),
        pytest.param(
            0b11,
            [CPU, MEMORY],
            Code.UNSCHEDULABLE,
            ["Insufficient cpu", "Insufficient memory"],
            id="several are in the order of the reasons",
        ),
        pytest.param(
            0b101,
            [CPU, MEMORY, SILENT],
            Code.UNRESOLVABLE,
            ["Insufficient cpu"],
            id="a reason without a message only raises the code",
        ),
        pytest.param(
            0b11,
            [CPU, NEVER],
            Code.UNRESOLVABLE,
            ["Insufficient cpu", "node(s) were unschedulable"],
            id="the most severe code counts",
        ),
        pytest.param(
            0b1,
            [BROKEN],
            Code.ERROR,
            ['running "Fit" filter plugin: looking up x: not found'],
            id="an error names the plugin",
        ),
        pytest.param(
            0b11,
            [BROKEN, WORSE],
            Code.ERROR,
            ['running "Fit" filter plugin: looking up x: not found, out of luck'],
            id="several errors are joined",
        ),
        pytest.param(1 << 61, [CPU] * 61 + [MEMORY], Code.UNSCHEDULABLE, ["Insufficient memory"], id="the last bit"),
    ],
)
def test_reason_bits_as_a_status(bits: int, reasons: list[Reason], code: Code, said: list[str]) -> None:
    assert status_of("Fit", bits, reasons) == Status(code, tuple(said), "Fit")
    assert code_of(bits, reasons) is code


def test_no_bits_are_a_success() -> None:
    assert code_of(0, [CPU]) is Code.SUCCESS
    with pytest.raises(AssertionError, match="Fit returned 0b10, but has only 1 reasons"):
        status_of("Fit", 0b10, [CPU])


def test_codes_are_ordered_from_harmless_to_severe() -> None:
    said = [Code.SUCCESS, Code.SKIP, Code.WAIT, Code.PENDING, Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.ERROR]
    assert sorted(Code, key=lambda code: code.severity) == said


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status.unschedulable("no", "never"), Code.UNSCHEDULABLE),
        (Status.unresolvable("no", "never"), Code.UNRESOLVABLE),
        (Status.error("no", "never"), Code.ERROR),
    ],
)
def test_a_message_joins_the_reasons(status: Status, code: Code) -> None:
    assert (status.code, status.message, status.plugin) == (code, "no, never", "")
