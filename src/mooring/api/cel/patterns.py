r"""Compile and match regular expressions that users supply, in linear time, with RE2.

Input: patterns of CRD schemas (`pattern`) and of the CEL functions `matches`, `find` and `findAll`, in the syntax of
Go's `regexp` package. Output: `compile_pattern(text)`, a cached `Pattern`, or a `PatternError` with Go's error text.

 1. A pattern never runs on Python's `re`, which backtracks.
 2. A pattern has at most `PATTERN_BYTES_MAX` bytes, `UNICODE_CLASSES_MAX` classes such as `\pL` and repeat counts that
    add up to `REPEATS_MAX`. It compiles within the larger of `MEMORY_BUDGETS`. RE2 refuses repeat counts above 1,000,
    multiplied over nested repeats, as Go does.
 3. A match takes at most `WORK_MAX` steps of RE2's slowest engine. More raises `PatternWorkExceeded`, before the match.
 4. The cache is bounded in bytes: each entry counts with the memory that RE2 may use for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

import re2

from mooring.api.caches import SizedCache

PATTERN_BYTES_MAX = 8_192
UNICODE_CLASSES_MAX = 64
"""RE2 builds a table of about 100 KB for each of them before it checks the size of the program."""

REPEATS_MAX = 20_000
"""RE2 unrolls all counted repeats before it checks the size of the program."""

MEMORY_BUDGETS = (256 << 10, 2 << 20)
"""Bytes for the program and the state cache of one pattern: what most patterns need, and the maximum."""

_STATE_CACHE_SHARE = 1 / 8
"""A program that fills more of its budget leaves too little for RE2's cache of DFA states, and gets the larger one."""

_INSTRUCTION_BYTES = 16

WORK_MAX = 12_500_000
"""Maximum of instructions times bytes of text in one match: about 0.15 s if RE2 has to simulate the NFA. Enough for
`^.{1,1000}$` on 1,000 characters of four bytes."""

OBJECT_WORK_MAX = 2 * WORK_MAX
"""The same for all matches in the schema validation of one object."""

CACHE_BYTES_MAX = 64 << 20

_ENTRY_BYTES = 2_048


class PatternError(ValueError):
    """The pattern is not valid or too large."""

    def __init__(self, reason: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {reason}: `{part}`")


class PatternWorkExceeded(Exception):
    """The text is too long for this pattern."""


class _Match(Protocol):
    def span(self) -> tuple[int, int]: ...
    def __getitem__(self, group: int) -> bytes: ...


class _CompiledPattern(Protocol):
    """What is used of google-re2, which has no type hints."""

    @property
    def groupindex(self) -> Mapping[bytes, int]: ...
    @property
    def programsize(self) -> int: ...
    def search(self, text: bytes, pos: int = 0) -> _Match | None: ...


class Pattern:
    """A compiled pattern."""

    __slots__ = ("instruction_count", "memory_bytes", "regexp")

    def __init__(self, pattern: str) -> None:
        """Raises `PatternError`."""
        encoded = _encoded(pattern)
        _check_go_syntax(pattern, encoded)
        self.regexp, self.memory_bytes = _compiled(encoded, pattern)
        for name in self.regexp.groupindex:
            if not name.isascii():
                raise PatternError("invalid named capture", f"(?P<{name.decode()}>")
        self.instruction_count = self._count_instructions(encoded)

    def _count_instructions(self, encoded: bytes) -> int:
        """About the number of instructions as Go counts them: one for a class, not one for each range of bytes."""
        try:
            # RE2 takes 20 ms to fold the case of a class such as `\pL` in Latin-1, so `\d` stands in for it.
            small = _CLASS_OR_ESCAPE.sub(lambda escape: rb"\d" if escape[1] else escape[0], encoded)
            return _with_options(small, MEMORY_BUDGETS[-1], is_latin=True).programsize
        except re2.error:  # the pattern names a character that is not in Latin-1
            return self.regexp.programsize

    def work(self, text: str) -> int:
        """Maximum number of steps that one match takes."""
        return self.instruction_count * (len(text) if text.isascii() else len(_encoded(text)))

    def is_found_in(self, text: str) -> bool:
        encoded = _encoded(text)
        self._check_work(len(encoded))
        return self.regexp.search(encoded) is not None

    def first_in(self, text: str) -> str:
        """The text of the leftmost match, or nothing."""
        encoded = _encoded(text)
        self._check_work(len(encoded))
        match = self.regexp.search(encoded)
        return match[0].decode() if match is not None else ""

    def all_in(self, text: str, count_max: int) -> list[str]:
        """Matches that do not overlap, without an empty match directly after another one, as Go's `FindAll`.

        Each search may read to the end of the text, so the work of all searches together is bounded.
        """
        encoded = _encoded(text)
        found: list[str] = []
        position, last_end, bytes_read = 0, -1, 0
        while position <= len(encoded) and len(found) != count_max:
            bytes_read += len(encoded) - position
            self._check_work(bytes_read)
            match = self.regexp.search(encoded, position)
            if match is None:
                break
            start, end = match.span()
            if end > start or start != last_end:
                found.append(match[0].decode())
            position = end if end > position else _next_character(encoded, position)
            last_end = end
        return found

    def _check_work(self, byte_count: int) -> None:
        if self.instruction_count * byte_count > WORK_MAX:
            raise PatternWorkExceeded


class PatternBudget:
    """The work that is left for the patterns of one object's schema."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = OBJECT_WORK_MAX

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise PatternWorkExceeded


def compile_pattern(pattern: str) -> Pattern:
    """The compiled pattern. Raises `PatternError`."""
    known = _cache.get(pattern)
    if known is not None:
        return known
    compiled = Pattern(pattern)
    return _cache.add(pattern, compiled, compiled.memory_bytes + len(pattern) + _ENTRY_BYTES)


_cache: SizedCache[Pattern] = SizedCache(CACHE_BYTES_MAX)


# --- Go's syntax ------------------------------------------------------------------------------------------------

_GO_REASONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""Go's text for what RE2 reports. The other texts are the same."""

_TOO_LARGE = "expression too large"
_REPEATS = re.compile(r"\{([0-9]{1,4})(?:,([0-9]{1,4})?)?\}")
_CLASS_OR_ESCAPE = re.compile(rb"\\[pP](\{[^}]*\}|.)|\\.", re.DOTALL)
_ESCAPES = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL)


def _check_go_syntax(pattern: str, encoded: bytes) -> None:
    if len(encoded) > PATTERN_BYTES_MAX:
        raise PatternError(_TOO_LARGE, f"{pattern[:64]}…")
    class_count = 0
    for escape in _ESCAPES.finditer(pattern):
        if escape[1] == "C":  # one byte: RE2 has it, Go does not
            raise PatternError("invalid escape sequence", r"\C")
        class_count += escape[1] in ("p", "P")
    repeat_count = sum(max(int(count) for count in counts if count) for counts in _REPEATS.findall(pattern))
    if class_count > UNICODE_CLASSES_MAX or repeat_count > REPEATS_MAX:
        raise PatternError(_TOO_LARGE, pattern)


def _compiled(encoded: bytes, pattern: str) -> tuple[_CompiledPattern, int]:
    for memory_bytes in MEMORY_BUDGETS:
        try:
            compiled = _with_options(encoded, memory_bytes)
        except re2.error as error:
            message: bytes = error.args[0]
            reason, _, part = message.decode(errors="replace").partition(": ")
            if not reason.startswith("pattern too large"):
                raise PatternError(_GO_REASONS.get(reason, reason), part) from None
        else:
            program_bytes = compiled.programsize * _INSTRUCTION_BYTES
            if memory_bytes == MEMORY_BUDGETS[-1] or program_bytes <= memory_bytes * _STATE_CACHE_SHARE:
                return compiled, memory_bytes
    raise PatternError(_TOO_LARGE, pattern)


def _with_options(encoded: bytes, memory_bytes: int, *, is_latin: bool = False) -> _CompiledPattern:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory_bytes
    if is_latin:
        options.encoding = re2.Options.Encoding.LATIN1
    compiled: _CompiledPattern = re2.compile(encoded, options)
    re2.purge()  # google-re2 has a cache of its own, bounded in entries, not in bytes
    return compiled


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair: Go reads the replacement character
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _next_character(encoded: bytes, position: int) -> int:
    position += 1
    while position < len(encoded) and encoded[position] & 0xC0 == 0x80:
        position += 1
    return position
