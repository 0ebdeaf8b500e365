"""Names in the source: one class per name, and no private vocabulary."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "mooring"
MODULES = sorted(SOURCE.rglob("*.py"))

BANNED = frozenset(
    (
        *("band", "banded", "bands", "desk", "door", "doors", "ear", "fleet", "happening", "happenings", "hearing"),
        *("house", "judge", "judgement", "keeper", "keepers", "lives", "mishap", "mould", "moulds", "outbox", "plate"),
        *("promise", "promises", "shelf", "shelves", "situation", "sleeper", "sleepers", "twin", "twins", "workshop"),
    )
)
"""Words of an invented vocabulary. Use the term of Kubernetes or of software engineering."""


def test_no_class_name_appears_twice_within_a_package() -> None:
    modules: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in MODULES:
        module = path.relative_to(SOURCE)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules[module.parts[0], node.name].append(str(module))
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}


def test_no_banned_word_in_a_name() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in MODULES
        for name in names_in(path)
        if BANNED.intersection(words_of(name))
    ]
    assert found == []


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
