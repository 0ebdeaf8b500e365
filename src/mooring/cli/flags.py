"""Values of flags as Kubernetes' components write and read them.

Comes in   what was typed after a flag
Goes out   a value, and its text as kube-scheduler would show it (`/flagz`)

 1. A switch stands alone or has a value after an equals sign: `--leader-elect`, `--leader-elect=false`.
 2. A list is separated by commas, and a flag that is given twice adds to it.
 3. Durations are Go's: `15s`, `1m30s`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")

FlagValue = bool | int | float | str | tuple[str, ...]

if TYPE_CHECKING:
    _ParamType = click.ParamType[FlagValue]
else:
    _ParamType = click.ParamType  # older versions of the library cannot be told of what it is


class Sort(Enum):
    """What a flag takes; the value is how help calls it."""

    SWITCH = "true|false"
    TEXT = "TEXT"
    FILE = "FILE"
    ADDRESS = "IP"
    INTEGER = "INTEGER"
    PORT = "PORT"
    NUMBER = "NUMBER"
    DURATION = "DURATION"
    LIST = "A,B,…"
    PAIRS = "CERTIFICATE,KEY[:NAMES]"
    """Given as often as wanted; what is between commas belongs together."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of a component."""

    name: str
    sort: Sort
    default: FlagValue
    help: str
    short: str = ""
    endings: tuple[str, ...] = ()
    """What the names of its files end with: a shell offers only those."""
    has_effect: bool = True
    """Whether it changes anything here. A flag without effect is accepted, so that a manifest of the Kubernetes
    component works unchanged; it is not in the help, and setting it is logged as a warning."""

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")


class ValueType(_ParamType):
    """One value of a sort."""

    def __init__(self, sort: Sort, endings: tuple[str, ...] = ()) -> None:
        self.sort = sort
        self.name = sort.value
        self._endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FlagValue:
        if not isinstance(value, str):
            assert isinstance(value, bool | int | float | tuple), f"{value!r} is no value of a flag"
            return value  # a default
        try:
            return parse_value(self.sort, value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        match self.sort:
            case Sort.SWITCH:
                return [CompletionItem(word) for word in ("true", "false") if word.startswith(incomplete)]
            case Sort.FILE if self._endings:
                return [CompletionItem(path) for path in _files(incomplete, self._endings)]
            case Sort.FILE:
                return [CompletionItem(incomplete, type="file")]
            case _:
                return []


def parse_value(sort: Sort, text: str) -> FlagValue:
    """Raises `ValueError` that says what was found and what was wanted."""
    match sort:
        case Sort.SWITCH:
            if text in _TRUE or text in _FALSE:
                return text in _TRUE
            raise ValueError(f"found {text!r}, wanted true or false")
        case Sort.INTEGER | Sort.PORT:
            return _integer(text, 65_535 if sort is Sort.PORT else 2**31 - 1, 0 if sort is Sort.PORT else -(2**31))
        case Sort.NUMBER:
            try:
                return float(text)
            except ValueError:
                raise ValueError(f"found {text!r}, wanted a number") from None
        case Sort.DURATION:
            from mooring.api.durations import parse_duration

            return parse_duration(text)
        case Sort.ADDRESS:
            if text:
                ipaddress.ip_address(text)
            return text
        case Sort.LIST:
            return tuple(part for part in text.split(",") if part)
        case Sort.PAIRS:
            return (text,)
        case Sort.TEXT | Sort.FILE:
            return text


def shown(sort: Sort, value: FlagValue) -> str:
    """A value as kube-scheduler shows it."""
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return f"[{(';' if sort is Sort.PAIRS else ',').join(value)}]"
        case float() if sort is Sort.DURATION:
            from mooring.api.durations import format_duration

            return format_duration(value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def option_of(flag: Flag) -> click.Option:
    """The flag as click knows it."""
    names = [f"--{flag.name}", flag.attribute]
    if flag.short:
        names.insert(0, f"-{flag.short}")
    default = shown(flag.sort, flag.default)
    settings: dict[str, Any] = {"metavar": flag.sort.value, "help": _help(flag, default), "default": flag.default}
    if flag.sort is Sort.SWITCH:
        settings |= {"is_flag": False, "flag_value": "true"}
    if flag.sort in (Sort.LIST, Sort.PAIRS):
        settings |= {"multiple": True, "default": None, "callback": _joined(flag)}
    return click.Option(names, type=ValueType(flag.sort, flag.endings), hidden=not flag.has_effect, **settings)


def _joined(flag: Flag) -> Any:
    def join(ctx: click.Context, param: click.Parameter, values: Sequence[tuple[str, ...]] | None) -> tuple[str, ...]:
        assert isinstance(flag.default, tuple)
        return tuple(item for value in values for item in value) if values else flag.default

    return join


def _help(flag: Flag, default: str) -> str:
    return f"{flag.help} [default: {default}]" if default not in ("", "[]") else flag.help


def _integer(text: str, highest: int, lowest: int) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        raise ValueError(f"found {text!r}, wanted a whole number") from None
    if not lowest <= number <= highest:
        raise ValueError(f"found {number}, wanted a number from {lowest} to {highest}")
    return number


def _files(beginning: str, endings: tuple[str, ...]) -> list[str]:
    """Folders, and files with one of the endings, whose paths begin so."""
    head, slash, tail = beginning.rpartition("/")
    try:
        found = sorted(Path(f"{head}{slash}" or ".").iterdir())
    except OSError:
        return []
    return [
        f"{head}{slash}{path.name}{'/' if path.is_dir() else ''}"
        for path in found
        if path.name.startswith(tail) and (path.is_dir() or path.name.endswith(endings))
    ]
