"""A call: one request after the HTTP layer has parsed its path, headers and query.

Only `size_bytes`, `warnings` and `prior_errors` change while the request is handled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from mooring.api.kinds import Kind
from mooring.apiserver.validation.fields import FieldError
from mooring.serving.users import User

WARNINGS_MAX = 4_096
"""Further warnings are dropped. The headers of a response hold that many letters."""


class Operation(Enum):
    """The operation of a call, as in admission."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"

    __hash__ = object.__hash__  # each member exists once; the hash of `Enum` is a function in Python


class FieldValidation(Enum):
    """How fields that a kind does not have are treated."""

    IGNORE = "Ignore"
    WARN = "Warn"
    STRICT = "Strict"


@dataclass(slots=True)
class Call:
    """One request."""

    verb: str
    """As RBAC calls it: get, list, watch, create, update, patch, delete, deletecollection."""
    kind: Kind
    user: User
    now_s: float
    """The wall clock when the request came in."""
    now: str
    """The wall clock in the format of timestamps in objects."""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_dry_run: bool = False
    field_manager: str = ""
    """The field manager of this call: the parameter, or the first part of the user agent."""
    field_validation: FieldValidation = FieldValidation.WARN
    is_forced: bool = False
    size_bytes: int = 0
    """The size of the body, or of the stored object if that is larger: whether steps run in the `WorkerThread`."""
    warnings: list[str] = field(default_factory=list)
    prior_errors: list[FieldError] = field(default_factory=list)
    """Field errors that needed a lookup. The strategy reports them before all others."""
    _warned: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def warn(self, text: str) -> None:
        """Add a warning to the response; each text once."""
        if len(self.warnings) >= WARNINGS_MAX:
            return
        if len(self._warned) != len(self.warnings):
            self._warned = set(self.warnings)
        if text not in self._warned:
            self._warned.add(text)
            self.warnings.append(text)
