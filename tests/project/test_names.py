"""Names in the source: one class per name, and no private vocabulary."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "mooring"
MODULES = sorted(SOURCE.rglob("*.py"))
OTHER_MODULES = [
    path
    for folder in ("tests", "bench", "tools", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "players" not in path.parts  # they came with the recordings
]

BANNED = frozenset(
    (
        *("band", "banded", "bands", "desk", "desks", "door", "doors", "ear", "ears", "experiment", "experiments"),
        *("fleet", "fleets", "happening", "happenings", "hearing", "house", "judge", "judgement", "judgements"),
        *("keeper", "keepers", "mishap", "mishaps", "mould", "moulds", "outbox", "plate", "promise", "promises"),
        *("shelf", "shelves", "situation", "situations", "sleeper", "sleepers", "trial", "trials", "twin", "twins"),
        *("workshop", "workshops"),
    )
)
"""Words of an invented vocabulary. Use the term of Kubernetes or of software engineering."""
BANNED_IN_SOURCE = frozenset(
    (
        *("asked", "beside", "grain", "grains", "lives", "misfit", "misfits", "mishap", "room", "tend", "told"),
        *("wake", "wakes", "waken", "wish", "wishes", "woken"),
    )
)
"""Words that only a sentence may contain. The names of tests are sentences."""
UNCHANGED_PACKAGES = frozenset(("cli",))
"""Packages that still have names with words of the second list."""

KUBERNETES_NAMES = frozenset(
    ("DeploymentStrategy", "NodeAffinity", "ResourceQuota", "ServiceAccount")  # a type, and a plugin or strategy
)
"""Kubernetes uses these names for several things, too."""


def test_no_class_name_appears_twice_within_a_package() -> None:
    assert {name: found for name, found in classes_by_package().items() if len(found) > 1} == {}


def test_no_class_name_appears_in_two_packages() -> None:
    packages: dict[str, list[str]] = defaultdict(list)
    for package, name in classes_by_package():
        packages[name].append(package)
    shared = {name for name, found in packages.items() if len(found) > 1}
    assert shared - KUBERNETES_NAMES == set()


def classes_by_package() -> dict[tuple[str, str], list[str]]:
    """The modules that define a class, by package and name."""
    modules: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in MODULES:
        module = path.relative_to(SOURCE)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules[module.parts[0], node.name].append(str(module))
    return modules


def test_no_banned_word_in_a_name() -> None:
    found: list[str] = []
    for path in (*MODULES, *OTHER_MODULES):
        banned = banned_in(path)
        found += [f"{path.relative_to(ROOT)}: {name}" for name in names_in(path) if banned.intersection(words_of(name))]
    assert found == []


def banned_in(path: Path) -> frozenset[str]:
    is_strict = path.is_relative_to(SOURCE) and path.relative_to(SOURCE).parts[0] not in UNCHANGED_PACKAGES
    return BANNED | BANNED_IN_SOURCE if is_strict else BANNED


def names_in(path: Path) -> Iterator[str]:
    """The names that a module introduces, its own included."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def words_of(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


@pytest.mark.parametrize(
    ("name", "words"),
    [("front_desk", {"front", "desk"}), ("HttpDoor", {"http", "door"}), ("DOOR_WIDTH", {"door", "width"})],
)
def test_names_are_split_into_words(name: str, words: set[str]) -> None:
    assert words_of(name) == words
