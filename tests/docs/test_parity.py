"""What docs/parity.md claims has a test, and it forgets no plugin, no argument and no recording."""

from __future__ import annotations

import re

import msgspec
import pytest

from mooring.scheduler.catalogue import BUILT_IN
from mooring.scheduler.config.types import ARGUMENTS
from tests.docs.pages import ROOT, Row, names_of_tests, page
from tests.golden.recordings import FAMILIES, recorded

PARITY = page("docs/parity.md")
_RECORDINGS = "recordings: "
_TEST = re.compile(r"`([\w/]+\.py)::([^`]+)`")
_UNSHOWN = "–"
"""For what does not exist yet, and so has nothing to show."""


def claims() -> list[Row]:
    return [row for row in PARITY.rows if row.section != "Feature gates"]


def test_every_plugin_has_a_row() -> None:
    named = {name for row in PARITY.rows if row.section == "Plugins" for name in re.findall(r"`(\w+)`", row.cells[0])}
    assert {plugin.name for plugin in BUILT_IN} - named == set()


def test_every_argument_is_in_a_row_of_its_plugin() -> None:
    said = _said_by_plugin()
    missing = [
        f"{plugin}.{field.encode_name}"
        for plugin, arguments in ARGUMENTS.items()
        for field in msgspec.structs.fields(arguments)
        if f"`{field.encode_name}`" not in said[plugin]
    ]
    assert missing == []


def _said_by_plugin() -> dict[str, str]:
    """All that is said of each plugin; of preemption there is a table of its own."""
    said: dict[str, str] = {}
    plugin = ""
    for row in PARITY.rows:
        if row.section == "Plugins":
            plugin = row.cells[0].strip("`") or plugin
        elif row.section == "Preemption":
            plugin = "DefaultPreemption"
        else:
            continue
        said[plugin] = said.get(plugin, "") + " ".join(row.cells[1:] if row.section == "Plugins" else row.cells)
    return said


def test_every_claim_is_shown_by_something() -> None:
    unshown = [row for row in claims() if not _families_of(row) and not _TEST.search(row.cells[-1])]
    assert [row.cells for row in unshown if not _may_be_unshown(row)] == []


def _may_be_unshown(row: Row) -> bool:
    return (row.cells[-1] == _UNSHOWN and row.cells[-2].startswith("not yet")) or "(#preemption)" in row.cells[1]


def test_recordings_that_are_named_exist() -> None:
    assert [(row.cells, name) for row in claims() for name in _families_of(row) if name not in FAMILIES] == []


def _families_of(row: Row) -> list[str]:
    shown_by = row.cells[-1]
    return shown_by.removeprefix(_RECORDINGS).split(", ") if shown_by.startswith(_RECORDINGS) else []


@pytest.mark.parametrize("named", sorted(set(_TEST.findall(PARITY.prose))), ids="::".join)
def test_tests_that_are_named_exist(named: tuple[str, str]) -> None:
    file, test = named
    path = ROOT / "tests" / file
    assert path.exists(), f"there is no tests/{file}"
    assert test in names_of_tests(path), f"tests/{file} has no {test}"


def test_known_differences_are_numbered_and_shown() -> None:
    written = PARITY.prose.partition("## Known differences")[2]
    items = re.split(r"^(\d+)\. ", written, flags=re.MULTILINE)[1:]
    assert [int(number) for number in items[::2]] == list(range(1, len(items) // 2 + 1))
    assert [text[:60] for text in items[1::2] if not _TEST.search(text)] == []
    referred = {int(number) for number in re.findall(r"\[(\d+)\]\(#known-differences\)", PARITY.prose)}
    assert referred <= set(range(1, len(items) // 2 + 1))


def test_the_recordings_are_counted_right() -> None:
    verdicts = [verdict for family in FAMILIES for _, verdict in recorded(family)]
    pods = sum(len(verdict.get("results", ())) for verdict in verdicts)
    said = " ".join(PARITY.text.split())
    assert f"passed on {len(verdicts):,} clusters with {pods:,} pending pods" in said


def test_a_gate_is_named_once_and_on_or_off() -> None:
    rows = [row for row in PARITY.rows if row.section == "Feature gates"]
    gates = [gate for row in rows for gate in re.findall(r"`(\w+)`", row.cells[0])]
    assert sorted(gates) == sorted(set(gates))
    assert {row.cells[1] for row in rows} == {"on", "off"}
