"""Problems of a configuration, with Kubernetes' messages.

1. A problem's text is a complete message that names the field. Its path is for programs, which find the line in the
   file with it (`YamlDocument.line_of`).
2. The five messages are those of Kubernetes' field errors, byte for byte: users search for them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mooring.api.field_errors import quoted, unsupported_value


@dataclass(frozen=True, slots=True)
class Problem:
    path: str
    text: str

    def __str__(self) -> str:
        return self.text


class ConfigurationError(ValueError):
    """An invalid configuration. The message has one line for each problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(dict.fromkeys(problems))
        assert self.problems, "a configuration error without a problem"
        super().__init__("\n".join(problem.text for problem in self.problems))


def invalid(path: str, value: object, detail: str) -> Problem:
    return _problem(path, f"Invalid value: {_shown(value)}", detail)


def duplicate(path: str, value: object, detail: str = "") -> Problem:
    return _problem(path, f"Duplicate value: {_shown(value)}", detail)


def not_supported(path: str, value: str, supported: Sequence[str]) -> Problem:
    return Problem(path, unsupported_value(path, value, supported))


def required(path: str, detail: str = "") -> Problem:
    return _problem(path, "Required value", detail)


def forbidden(path: str, detail: str) -> Problem:
    return _problem(path, "Forbidden", detail)


def child(path: str, name: str) -> str:
    """The path of a field of an object; the root has the empty path."""
    return f"{path}.{name}" if path else name


def _problem(path: str, verdict: str, detail: str) -> Problem:
    return Problem(path, f"{path}: {verdict}: {detail}" if detail else f"{path}: {verdict}")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=dict)
