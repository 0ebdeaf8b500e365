"""A call: one request, as the rooms behind the door see it.

Comes in   what the door read from the address, the headers and the query
Goes out   the same to everybody; only `warnings`, what is known of the spec and `prior_faults` are written to
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from mooring.api.kinds import Kind
from mooring.apiserver.access.users import User
from mooring.apiserver.faults import Fault
from mooring.apiserver.mould import Mould


class Operation(Enum):
    """What a call wants to do to an object, as admission calls it."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class FieldValidation(Enum):
    """What becomes of fields that a kind does not have."""

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
    """The same, as objects write it."""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_dry_run: bool = False
    field_manager: str = ""
    """Who manages the fields that this call writes: the parameter, or the first part of the user agent."""
    field_validation: FieldValidation = FieldValidation.WARN
    is_forced: bool = False
    warnings: list[str] = field(default_factory=list)
    mould: Mould | None = None
    """What is known of the spec of the body, which nobody has changed yet."""
    is_spec_new: bool = False
    """Whether nothing like that spec came before: then nobody need ask what else is known of it."""
    prior_faults: list[Fault] = field(default_factory=list)
    """What is wrong with the object and had to be looked up: its strategy tells it before everything else."""

    def warn(self, text: str) -> None:
        """Tell the caller something that does not stop him; each text once."""
        if text not in self.warnings:
            self.warnings.append(text)
