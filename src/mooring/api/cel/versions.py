"""Semantic versions: "1.2.3-rc.1+build.5", read strictly and compared by precedence.

Comes in   the `version` attributes of devices, and the arguments of `semver()`
Goes out   a `Version`, or a `VersionError` in the words that Kubernetes shows

 1. Build metadata is read and then ignored: two versions that differ only in it are equal.
 2. A version with a pre-release comes before the one without; numbers in a pre-release come before words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_UINT64_MAX = 2**64 - 1
_DIGITS_MAX = 20
_NUMBERS = re.compile(r"[0-9]+")
_ALPHANUMERICS = re.compile(r"[0-9A-Za-z-]+")

_Part = tuple[int, int, str]
"""One part of a pre-release, made so that Python's own comparison is the right one."""


class VersionError(ValueError):
    """A text is not a version."""


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    major: int
    minor: int
    patch: int
    pre_release: tuple[_Part, ...] = ()
    precedence: tuple[int, int, int, bool, tuple[_Part, ...]] = field(init=False)

    def __post_init__(self) -> None:
        precedence = (self.major, self.minor, self.patch, not self.pre_release, self.pre_release)
        object.__setattr__(self, "precedence", precedence)

    def __eq__(self, other: object) -> bool:
        return self.precedence == other.precedence if isinstance(other, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.precedence)

    def compared_to(self, other: Version) -> int:
        return (self.precedence > other.precedence) - (self.precedence < other.precedence)


def parse_version(text: str) -> Version:
    """The version that a text stands for, to the letter of the standard."""
    if not text:
        raise VersionError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise VersionError("No Major.Minor.Patch elements found")
    major, minor = _number("major", parts[0]), _number("minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, pre_release = rest.partition("-")
    patch = _number("patch", patch_text)
    pre_release_parts = tuple(_pre_release_part(part) for part in pre_release.split(".")) if dash else ()
    if plus:
        _check_build(build)
    return Version(major, minor, patch, pre_release_parts)


def parse_version_leniently(text: str) -> Version:
    """The same, after a leading "v" and leading zeros are taken away and missing numbers are taken as 0."""
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise VersionError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse_version(".".join(parts))


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped and stripped[0] in "0123456789" else "0" + stripped


def _number(name: str, text: str) -> int:
    if text and not _NUMBERS.fullmatch(text):
        raise VersionError(f"Invalid character(s) found in {name} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise VersionError(f"{name.capitalize()} number must not contain leading zeroes {quoted(text)}")
    return _uint64(text)


def _pre_release_part(text: str) -> _Part:
    if not text:
        raise VersionError("Prerelease is empty")
    if _NUMBERS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise VersionError(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        return (0, _uint64(text), "")
    if not _ALPHANUMERICS.fullmatch(text):
        raise VersionError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return (1, 0, text)


def _check_build(build: str) -> None:
    for part in build.split("."):
        if not part:
            raise VersionError("Build meta data is empty")
        if not _ALPHANUMERICS.fullmatch(part):
            raise VersionError(f"Invalid character(s) found in build meta data {quoted(part)}")


def _uint64(text: str) -> int:
    if not text:
        raise VersionError('strconv.ParseUint: parsing "": invalid syntax')
    value = int(text[:_DIGITS_MAX])
    if len(text) > _DIGITS_MAX or value > _UINT64_MAX:
        raise VersionError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return value


_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


def quoted(text: str) -> str:
    """In double quotes, with everything escaped that cannot be printed, as Go's %q does it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
