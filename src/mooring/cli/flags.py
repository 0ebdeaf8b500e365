"""Flag values in the format of Kubernetes' components.

Input: the text of a flag. Output: its value, and its text as `/flagz` shows it.

 1. A switch stands alone or has a value after an equals sign: `--leader-elect`, `--leader-elect=false`.
 2. A list is separated by commas. A repeated flag extends it.
 3. Durations are Go's: `15s`, `1m30s`.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click
from click.shell_completion import CompletionItem

from mooring.api.well_known import FALSE_TEXTS, TRUE_TEXTS

SECTION_COLUMN_MAX = 26
"""Width of the column of options in a help with sections, which fits a terminal of 80 columns."""

logger = logging.getLogger(__name__)

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
FlagValue = bool | int | float | str | tuple[str, ...]

if TYPE_CHECKING:
    _ParamType = click.ParamType[FlagValue]
else:
    _ParamType = click.ParamType  # not generic in older versions of click


class FlagType(Enum):
    """The type of a flag; the value is its name in the help."""

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
    """May be repeated; values are not split at commas."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of a component."""

    name: str
    flag_type: FlagType
    default: FlagValue
    help: str
    short: str = ""
    endings: tuple[str, ...] = ()
    """File name endings for shell completion."""
    has_effect: bool = True
    """A flag without effect is accepted, so that the command line of the Kubernetes component works unchanged. It is
    not in the help, and setting it logs a warning. A flag without a help text is not in the help, either."""

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")


FlagSections = Mapping[str, Sequence[Flag]]
"""Flags by section of the help."""


class ValueType(_ParamType):
    """The click type of a flag value."""

    def __init__(self, flag_type: FlagType, endings: tuple[str, ...] = ()) -> None:
        self.flag_type = flag_type
        self.name = flag_type.value
        self._endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FlagValue:
        if not isinstance(value, str):
            assert isinstance(value, bool | int | float | tuple), f"{value!r} is not a flag value"
            return value  # a default
        try:
            return parse_value(self.flag_type, value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        match self.flag_type:
            case FlagType.SWITCH:
                return [CompletionItem(word) for word in ("true", "false") if word.startswith(incomplete)]
            case FlagType.FILE if self._endings:
                return [CompletionItem(path) for path in _files(incomplete, self._endings)]
            case FlagType.FILE:
                return [CompletionItem(incomplete, type="file")]
            case _:
                return []


def parse_value(flag_type: FlagType, text: str) -> FlagValue:
    """Raises `ValueError` with what was found and what was expected."""
    match flag_type:
        case FlagType.SWITCH:
            if text in TRUE_TEXTS or text in FALSE_TEXTS:
                return text in TRUE_TEXTS
            raise ValueError(f"found {text!r}, wanted true or false")
        case FlagType.INTEGER | FlagType.PORT:
            return _integer(
                text, 65_535 if flag_type is FlagType.PORT else 2**31 - 1, 0 if flag_type is FlagType.PORT else -(2**31)
            )
        case FlagType.NUMBER:
            try:
                return float(text)
            except ValueError:
                raise ValueError(f"found {text!r}, wanted a number") from None
        case FlagType.DURATION:
            from mooring.api.durations import parse_duration

            return parse_duration(text)
        case FlagType.ADDRESS:
            if text:
                ipaddress.ip_address(text)
            return text
        case FlagType.LIST:
            return tuple(part for part in text.split(",") if part)
        case FlagType.PAIRS:
            return (text,)
        case FlagType.TEXT | FlagType.FILE:
            return text


def shown(flag_type: FlagType, value: FlagValue) -> str:
    """A value as `/flagz` shows it."""
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return f"[{(';' if flag_type is FlagType.PAIRS else ',').join(value)}]"
        case float() if flag_type is FlagType.DURATION:
            from mooring.api.durations import format_duration

            return format_duration(value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def flag_options(sections: FlagSections) -> Callable[[Decorated], Decorated]:
    """The flags as options of a command, in the order of the help."""
    return with_options(*(_option(flag) for flags in sections.values() for flag in flags))


def attributes_by_section(sections: FlagSections) -> dict[str, list[str]]:
    """For `SectionedCommand`."""
    return {title: [flag.attribute for flag in flags] for title, flags in sections.items()}


def _option(flag: Flag) -> Callable[[Decorated], Decorated]:
    names = [f"--{flag.name}", flag.attribute]
    if flag.short:
        names.insert(0, f"-{flag.short}")
    settings: dict[str, Any] = {"metavar": flag.flag_type.value, "default": flag.default}
    if flag.has_effect and flag.help:
        settings["help"] = _help(flag, shown(flag.flag_type, flag.default))
    else:
        settings["hidden"] = True
    if flag.flag_type is FlagType.SWITCH:
        settings |= {"is_flag": False, "flag_value": "true"}
    if flag.flag_type in (FlagType.LIST, FlagType.PAIRS):
        settings |= {"multiple": True, "default": None, "callback": _joined(flag)}
    return click.option(*names, type=ValueType(flag.flag_type, flag.endings), **settings)


def warn_of_flags_without_effect(flags: Iterable[Flag], values: Mapping[str, FlagValue]) -> None:
    """Logs those whose value is not the default; `values` are by flag name."""
    for flag in flags:
        value = values[flag.name]
        if not flag.has_effect and value != flag.default:
            logger.warning("--%s=%s has no effect here", flag.name, shown(flag.flag_type, value))


def switch_option(*names: str, help: str, default: bool | None = None) -> Callable[[Decorated], Decorated]:
    """An option of a command of our own that is a switch as in Go. Its default is in the help."""
    return click.option(
        *names,
        is_flag=False,
        flag_value="true",
        default=default,
        type=ValueType(FlagType.SWITCH),
        metavar=FlagType.SWITCH.value,
        help=help,
    )


def duration_option(*names: str, help: str, default: str | None = None) -> Callable[[Decorated], Decorated]:
    return click.option(
        *names,
        type=ValueType(FlagType.DURATION),
        metavar=FlagType.DURATION.value,
        default=default,
        show_default=default is not None,
        help=help,
    )


def with_options(*options: Callable[..., Any]) -> Callable[[Decorated], Decorated]:
    """A decorator that adds options, in the order of the help."""

    def decorate(command: Decorated) -> Decorated:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def names_in(text: str) -> tuple[str, ...]:
    """Names that are separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


class SectionedCommand(click.Command):
    """A command whose help shows its options by section: `sections` has the names of their parameters."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shown = {parameter.name: parameter.get_help_record(ctx) for parameter in self.get_params(ctx)}
        rest = [name for name in shown if not any(name in names for names in self.sections.values())]
        for title, names in {**self.sections, "Other options": rest}.items():
            rows = [row for name in names if (row := shown.get(name)) is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=SECTION_COLUMN_MAX)


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
    """Folders, and files with one of the endings, for completion."""
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


def size_bytes(flag: str, text: str) -> int:
    """The value of a flag that is a size in bytes. Raises `InputError`."""
    from mooring.api.quantity import quantity_value  # not for `mooring --help`
    from mooring.cli.errors import input_error

    try:
        size = quantity_value(text)
    except ValueError:
        size = 0
    if size <= 0:
        raise input_error(f"--{flag}: {text!r} is no size; wanted one such as 500Mi or 2Gi")
    return size
