"""Patterns: from the text of a regular expression to its tree, in the dialect of RE2.

Comes in   a pattern
Goes out   a tree; or a `RegexError` in the words that Kubernetes shows

 1. Flags (`(?i)`, `(?s)`, `(?m)`, `(?U)`) are resolved here: in the tree every letter is a set, every anchor says what
    it means, and every repetition knows whether it is greedy.
 2. There are no back references and no look-arounds: without them a pattern can be matched in linear time.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

REPEAT_MAX = 1_000
LAST_LETTER = 0x10FFFF


class RegexError(ValueError):
    """A pattern cannot be read."""

    def __init__(self, reason: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {reason}: `{part}`")


class Regexp:
    """A node of the tree."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Letters(Regexp):
    """One letter out of these ranges, or of these Unicode categories; or any other, if negated."""

    ranges: tuple[tuple[int, int], ...]
    categories: tuple[tuple[str, bool], ...] = ()
    is_negated: bool = False

    def holds(self, letter: str) -> bool:
        code = ord(letter)
        found = any(low <= code <= high for low, high in self.ranges) or any(
            unicodedata.category(letter).startswith(category) is not is_excluded
            for category, is_excluded in self.categories
        )
        return found is not self.is_negated


@dataclass(frozen=True, slots=True)
class Anchor(Regexp):
    """A place between letters: "text start", "text end", "line start", "line end", "word edge", "no word edge"."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence(Regexp):
    parts: tuple[Regexp, ...]


@dataclass(frozen=True, slots=True)
class Either(Regexp):
    options: tuple[Regexp, ...]


@dataclass(frozen=True, slots=True)
class Repeated(Regexp):
    part: Regexp
    least: int
    most: int | None
    is_greedy: bool


def parse_regex(pattern: str) -> Regexp:
    """The tree of a pattern."""
    reader = _Reader(pattern)
    tree = reader.either()
    if reader.position < len(pattern):
        raise RegexError("unexpected )", pattern)
    return tree


_DIGITS = ((48, 57),)
_SPACES = ((9, 10), (12, 13), (32, 32))
_WORDS = ((48, 57), (65, 90), (95, 95), (97, 122))
_PERL_CLASSES = {"d": _DIGITS, "s": _SPACES, "w": _WORDS}
_POSIX_CLASSES = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGITS,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORDS,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_ANCHOR_ESCAPES = {"A": "text start", "z": "text end", "b": "word edge", "B": "no word edge"}
_CATEGORIES = re.compile("C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?")
_THIRD_CASES = {"k": "\u212a", "s": "\u017f"}
_REPEAT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_GROUP_NAME = re.compile(r"\(\?P?<([^>]*)>")
_FLAGS = re.compile(r"\(\?([imsU]*)(-[imsU]+)?([:)])")
_FULL = Letters(((0, LAST_LETTER),))
_NOT_NEWLINE = Letters(((10, 10),), is_negated=True)


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.flags: frozenset[str] = frozenset()
        self.names: set[str] = set()

    def either(self) -> Regexp:
        options = [self._sequence()]
        while self._next_is("|"):
            self.position += 1
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Either(tuple(options))

    def _sequence(self) -> Regexp:
        parts: list[Regexp] = []
        repeat_start = repeat_end = -1
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            start = self.position
            bounds = self._repeat()
            if bounds is None:
                parts.extend(self._piece())
                continue
            if start == repeat_end:
                raise RegexError("invalid nested repetition operator", self.pattern[repeat_start : self.position])
            if not parts:
                raise RegexError("missing argument to repetition operator", self.pattern[start : self.position])
            least, most, is_greedy = bounds
            parts[-1] = Repeated(parts[-1], least, most, is_greedy is not ("U" in self.flags))
            repeat_start, repeat_end = start, self.position
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeat(self) -> tuple[int, int | None, bool] | None:
        letter = self.pattern[self.position]
        if letter in "*+?":
            self.position += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[letter]
        else:
            counts = _REPEAT.match(self.pattern, self.position) if letter == "{" else None
            if counts is None:
                return None
            least = int(counts[1])
            most = least if not counts[2] else int(counts[3]) if counts[3] else None
            if least > REPEAT_MAX or (most is not None and (most > REPEAT_MAX or most < least)):
                raise RegexError("invalid repeat count", counts[0])
            self.position = counts.end()
        is_lazy = self._next_is("?")
        self.position += is_lazy
        return least, most, not is_lazy

    def _piece(self) -> list[Regexp]:
        letter = self.pattern[self.position]
        match letter:
            case "(":
                return self._group()
            case "[":
                return [self._class()]
            case "\\":
                return self._escape()
        self.position += 1
        match letter:
            case ".":
                return [_FULL if "s" in self.flags else _NOT_NEWLINE]
            case "^":
                return [Anchor("line start" if "m" in self.flags else "text start")]
            case "$":
                return [Anchor("line end" if "m" in self.flags else "text end")]
            case _:
                return [self._letter(ord(letter))]

    def _group(self) -> list[Regexp]:
        before = self.flags
        if self.pattern.startswith("(?", self.position):
            if not self._group_head():
                return []
        else:
            self.position += 1
        inside = self.either()
        if not self._next_is(")"):
            raise RegexError("missing closing )", self.pattern)
        self.position += 1
        self.flags = before
        # A group is one piece to a repetition, even if it is empty.
        return [Sequence((inside,))]

    def _group_head(self) -> bool:
        """Passes "(?…"; false if it only sets flags."""
        if self.pattern.startswith(("(?P<", "(?<"), self.position):
            self._group_name()
            return True
        flags = _FLAGS.match(self.pattern, self.position)
        if flags is None or (flags[1] == "" and flags[2] is None and flags[3] == ")"):
            raise RegexError(*self._group_fault())
        self.flags = (self.flags | set(flags[1])) - set((flags[2] or "")[1:])
        self.position = flags.end()
        return flags[3] == ":"

    def _group_name(self) -> None:
        named = _GROUP_NAME.match(self.pattern, self.position)
        if named is None:
            raise RegexError("invalid named capture", self.pattern[self.position :])
        if not re.fullmatch(r"[A-Za-z0-9_]+", named[1]):
            raise RegexError("invalid named capture", named[0])
        if named[1] in self.names:
            raise RegexError("duplicate capture group name", named[1])
        self.names.add(named[1])
        self.position = named.end()

    def _group_fault(self) -> tuple[str, str]:
        end = self.position + 2
        while end < len(self.pattern) and self.pattern[end] in "imsU-":
            end += 1
        if end >= len(self.pattern):
            return "missing closing )", self.pattern
        return "invalid or unsupported Perl syntax", self.pattern[self.position : end + 1]

    # --- escapes ---

    def _escape(self) -> list[Regexp]:
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter in _ANCHOR_ESCAPES:
            self.position += 2
            return [Anchor(_ANCHOR_ESCAPES[letter])]
        if letter == "C":
            raise RegexError("invalid escape sequence", "\\C")
        if letter == "Q":
            end = self.pattern.find("\\E", self.position + 2)
            quoted = self.pattern[self.position + 2 : end if end >= 0 else None]
            self.position = end + 2 if end >= 0 else len(self.pattern)
            return [self._letter(ord(inside)) for inside in quoted]
        named = self._class_escape()
        return [named] if named is not None else [self._letter(self._escaped_code())]

    def _class_escape(self) -> Letters | None:
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter.lower() in _PERL_CLASSES and letter:
            self.position += 2
            return Letters(_PERL_CLASSES[letter.lower()], is_negated=letter.isupper())
        if letter not in ("p", "P"):
            return None
        start = self.position
        braced = re.compile(r"\\[pP]\{(\^?)([^}]*)\}").match(self.pattern, start)
        if braced is None:
            if self.pattern.startswith("{", start + 2):
                raise RegexError("invalid character class range", self.pattern[start:])
            name, is_negated = self.pattern[start + 2 : start + 3], False
            self.position = min(start + 3, len(self.pattern))
        else:
            name, is_negated, self.position = braced[2], bool(braced[1]), braced.end()
        if name == "Any":
            return Letters(((0, LAST_LETTER),), is_negated=is_negated is not (letter == "P"))
        if not _CATEGORIES.fullmatch(name):
            raise RegexError("invalid character class range", self.pattern[start : self.position])
        return Letters((), ((name, False),), is_negated is not (letter == "P"))

    def _escaped_code(self) -> int:
        start = self.position
        if start + 1 >= len(self.pattern):
            raise RegexError("trailing backslash at end of expression", "")
        letter = self.pattern[start + 1]
        self.position += 2
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "x":
            code = re.compile(r"([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\}").match(self.pattern, self.position)
            if code is not None and int(code[1] or code[2], 16) <= LAST_LETTER:
                self.position = code.end()
                return int(code[1] or code[2], 16)
        octal = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}").match(self.pattern, start + 1)
        if octal is not None:
            self.position = octal.end()
            return int(octal[0], 8)
        if letter < "\x80" and not letter.isalnum():
            return ord(letter)
        raise RegexError("invalid escape sequence", self.pattern[start : self.position])

    # --- classes ---

    def _class(self) -> Letters:
        start = self.position
        self.position += 1
        is_negated = self._next_is("^")
        self.position += is_negated
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[str, bool]] = []
        is_first = True
        while not self._next_is("]") or is_first:
            if self.position >= len(self.pattern):
                raise RegexError("missing closing ]", self.pattern[start:])
            is_first = False
            named = self._named_class()
            if named is None:
                ranges.append(self._range(start))
            elif named.categories:
                categories += [(name, named.is_negated) for name, _ in named.categories]
            else:
                ranges += _complement(named.ranges) if named.is_negated else list(named.ranges)
        self.position += 1
        folded = tuple(_folded(ranges)) if "i" in self.flags else tuple(ranges)
        return Letters(folded, tuple(categories), is_negated)

    def _named_class(self) -> Letters | None:
        if self.pattern.startswith("[:", self.position):
            end = self.pattern.find(":]", self.position + 2)
            if end >= 0:
                name = self.pattern[self.position + 2 : end]
                found = _POSIX_CLASSES.get(name.removeprefix("^"))
                if found is None:
                    raise RegexError("invalid character class range", self.pattern[self.position : end + 2])
                self.position = end + 2
                return Letters(found, is_negated=name.startswith("^"))
        return self._class_escape() if self._next_is("\\") else None

    def _range(self, class_start: int) -> tuple[int, int]:
        start = self.position
        low = self._class_letter(class_start)
        follows = self.pattern[self.position : self.position + 2]
        if len(follows) < 2 or follows[0] != "-" or follows[1] == "]":
            return low, low
        self.position += 1
        high = self._class_letter(class_start)
        if high < low:
            raise RegexError("invalid character class range", self.pattern[start : self.position])
        return low, high

    def _class_letter(self, class_start: int) -> int:
        if self.position >= len(self.pattern):
            raise RegexError("missing closing ]", self.pattern[class_start:])
        if self.pattern[self.position] == "\\":
            return self._escaped_code()
        self.position += 1
        return ord(self.pattern[self.position - 1])

    def _letter(self, code: int) -> Letters:
        ranges = [(code, code)]
        return Letters(tuple(_folded(ranges)) if "i" in self.flags else tuple(ranges))

    def _next_is(self, letter: str) -> bool:
        return self.pattern.startswith(letter, self.position)


def _complement(ranges: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    return [*gaps, *([(start, LAST_LETTER)] if start <= LAST_LETTER else [])]


def _folded(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges with the other case of each letter; beyond the basic plane, ranges are taken as they are."""
    folded = list(ranges)
    for low, high in ranges:
        for code in range(low, min(high, 0xFFFF) + 1):
            if high - low > 0x500:
                folded += [(65, 90), (97, 122)]
                break
            folded += [(ord(other), ord(other)) for other in _cases(chr(code)) if ord(other) != code]
    return folded


def _cases(letter: str) -> set[str]:
    others = {letter.lower(), letter.upper(), _THIRD_CASES.get(letter.lower(), letter)}
    return {other for other in others if len(other) == 1}
