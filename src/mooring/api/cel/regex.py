"""Patterns, matched: as RE2 would, in a time that does not explode.

Comes in   patterns of `matches`, `find` and `findAll`
Goes out   `compiled_regex(pattern)`, remembered

 1. A simple pattern is handed to Python's own engine, rewritten so that every part means there what it means in RE2.
 2. Python's engine goes back and tries again, which takes forever where something that can be read in several ways is
    repeated, such as `(a+)+b`. Those, and Unicode categories, run on a machine of ours that follows all ways at once.
 3. The leftmost match counts; among those the one that the pattern prefers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from mooring.api.cel.regex_syntax import (
    Anchor,
    Either,
    Letters,
    RegexError,
    Regexp,
    Repeated,
    Sequence,
    parse_regex,
)
from mooring.api.memory import Memory

__all__ = ["Regex", "RegexError", "compiled_regex"]

PATTERNS_REMEMBERED_MAX = 1_024
OPEN_REPEATS_MAX = 3
"""With more repetitions without an end, even side by side, trying again takes too long."""


class _Engine(Protocol):
    def span(self, text: str, start: int) -> tuple[int, int] | None:
        """Where the first match from a position on begins and ends."""


class Regex:
    __slots__ = ("engine",)

    def __init__(self, pattern: str) -> None:
        tree = parse_regex(pattern)
        self.engine: _Engine = _Python(tree) if _is_simple(tree) else _Machine(tree)

    def is_found_in(self, text: str) -> bool:
        return self.engine.span(text, 0) is not None

    def first_in(self, text: str) -> str:
        span = self.engine.span(text, 0)
        return text[span[0] : span[1]] if span is not None else ""

    def all_in(self, text: str, count_max: int) -> Iterator[str]:
        """Matches that do not overlap; an empty one right after another match does not count."""
        position, last_end, count = 0, -1, 0
        while position <= len(text) and count != count_max:
            span = self.engine.span(text, position)
            if span is None:
                return
            start, end = span
            if end > start or start != last_end:
                yield text[start:end]
                count += 1
            position = end if end > position else position + 1
            last_end = end


def compiled_regex(pattern: str) -> Regex:
    """Raises `RegexError`."""
    known = _patterns.get(pattern)
    return known if known is not None else _patterns.keep(pattern, Regex(pattern))


_patterns: Memory[str, Regex] = Memory(PATTERNS_REMEMBERED_MAX)


# --- on Python's engine -----------------------------------------------------------------------------------------

_PYTHON_ANCHORS = {
    "text start": r"\A",
    "text end": r"\Z",
    "line start": "(?m:^)",
    "line end": "(?m:$)",
    "word edge": r"(?a:\b)",
    "no word edge": r"(?a:(?<=\w)(?=\w)|(?<!\w)(?!\w))",
}


class _Python:
    __slots__ = ("search",)

    def __init__(self, tree: Regexp) -> None:
        self.search = re.compile(_rewritten(tree)).search

    def span(self, text: str, start: int) -> tuple[int, int] | None:
        match = self.search(text, start)
        return match.span() if match is not None else None


def _rewritten(tree: Regexp) -> str:
    match tree:
        case Letters():
            return _rewritten_letters(tree)
        case Anchor(kind=kind):
            return _PYTHON_ANCHORS[kind]
        case Sequence(parts=parts):
            return "".join(f"(?:{_rewritten(part)})" for part in parts)
        case Either(options=options):
            return "|".join(map(_rewritten, options))
        case Repeated(part=part, least=least, most=most, is_greedy=is_greedy):
            return f"(?:{_rewritten(part)}){{{least},{'' if most is None else most}}}{'' if is_greedy else '?'}"
        case _:
            raise AssertionError(tree)


def _rewritten_letters(letters: Letters) -> str:
    if not letters.ranges:
        return r"[\s\S]" if letters.is_negated else r"(?!)"
    ranges = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in letters.ranges)
    return f"[{'^' if letters.is_negated else ''}{ranges}]"


def _is_simple(tree: Regexp) -> bool:
    return not _has_categories(tree) and not _has_ambiguous_repeats(tree) and _open_repeats(tree) <= OPEN_REPEATS_MAX


def _parts(tree: Regexp) -> tuple[Regexp, ...]:
    match tree:
        case Sequence(parts=parts) | Either(options=parts):
            return parts
        case Repeated(part=part):
            return (part,)
        case _:
            return ()


def _has_categories(tree: Regexp) -> bool:
    return (isinstance(tree, Letters) and bool(tree.categories)) or any(map(_has_categories, _parts(tree)))


def _has_ambiguous_repeats(tree: Regexp, is_repeated: bool = False) -> bool:
    """Whether something that can be read in several ways is repeated."""
    if is_repeated and isinstance(tree, (Repeated, Either)):
        return True
    return any(_has_ambiguous_repeats(part, is_repeated or isinstance(tree, Repeated)) for part in _parts(tree))


def _open_repeats(tree: Regexp) -> int:
    is_open = isinstance(tree, Repeated) and (tree.most is None or tree.most > 1)
    return sum(map(_open_repeats, _parts(tree))) + is_open


# --- on a machine of our own ------------------------------------------------------------------------------------

_Instruction = tuple[Letters | Anchor | None, tuple[int, ...]]
"""A test and where to go on: after a letter, after an anchor, or without either, in order of preference."""


class _Machine:
    """Follows all ways through the pattern at once, one letter at a time."""

    __slots__ = ("end", "program", "start")

    def __init__(self, tree: Regexp) -> None:
        self.program: list[_Instruction] = [(None, ())]
        self.end = 0
        self.start = self._assembled(tree, self.end)

    def _assembled(self, tree: Regexp, follows: int) -> int:
        """The position of the instructions for a tree, which go on at `follows`."""
        match tree:
            case Letters() | Anchor():
                return self._added(tree, follows)
            case Sequence(parts=parts):
                for part in reversed(parts):
                    follows = self._assembled(part, follows)
                return follows
            case Either(options=options):
                return self._added(None, *(self._assembled(option, follows) for option in options))
            case Repeated():
                return self._assembled_repeat(tree, follows)
            case _:
                raise AssertionError(tree)

    def _assembled_repeat(self, tree: Repeated, follows: int) -> int:
        if tree.most is None:
            loop = self._added(None)
            body = self._assembled(tree.part, loop)
            self.program[loop] = (None, _by_preference(tree.is_greedy, body, follows))
            # A body that can be empty has to be tried once before the loop may end, or it would lose its preference.
            entry = self._added(None, *self.program[loop][1])
        else:
            entry = follows
            for _ in range(tree.most - tree.least):
                body = self._assembled(tree.part, entry)
                entry = self._added(None, *_by_preference(tree.is_greedy, body, follows))
        for _ in range(tree.least):
            entry = self._assembled(tree.part, entry)
        return entry

    def _added(self, test: Letters | Anchor | None, *follows: int) -> int:
        self.program.append((test, follows))
        return len(self.program) - 1

    def span(self, text: str, start: int) -> tuple[int, int] | None:
        found: tuple[int, int] | None = None
        ways: dict[int, int] = {}
        for position in range(start, len(text) + 1):
            reached: dict[int, int] = {}
            for instruction, begin in ways.items():
                self._follow(instruction, begin, text, position, reached)
            if found is None:
                self._follow(self.start, position, text, position, reached)
            ways = {}
            for instruction, begin in reached.items():
                if instruction == self.end:
                    found = (begin, position)
                    break  # the ways after this one are less preferred
                test, (following, *_) = self.program[instruction]
                if position < len(text) and isinstance(test, Letters) and test.holds(text[position]):
                    ways.setdefault(following, begin)
            if not ways and found is not None:
                return found
        return found

    def _follow(self, instruction: int, begin: int, text: str, position: int, reached: dict[int, int]) -> None:
        """Adds every letter test that can be reached without reading, in order of preference."""
        waiting, seen = [instruction], set(reached)
        while waiting:
            current = waiting.pop()
            if current in seen:
                continue
            seen.add(current)
            test, follows = self.program[current]
            if isinstance(test, Letters) or current == self.end:
                reached[current] = begin
            elif test is None or _holds_at(test.kind, text, position):
                waiting.extend(reversed(follows))


def _by_preference(is_greedy: bool, body: int, follows: int) -> tuple[int, int]:
    return (body, follows) if is_greedy else (follows, body)


def _holds_at(kind: str, text: str, position: int) -> bool:
    match kind:
        case "text start":
            return position == 0
        case "text end":
            return position == len(text)
        case "line start":
            return position == 0 or text[position - 1] == "\n"
        case "line end":
            return position == len(text) or text[position] == "\n"
        case _:
            is_edge = _is_word(text, position - 1) is not _is_word(text, position)
            return is_edge is (kind == "word edge")


def _is_word(text: str, position: int) -> bool:
    if not 0 <= position < len(text):
        return False
    letter = text[position]
    return letter == "_" or (letter.isascii() and letter.isalnum())
