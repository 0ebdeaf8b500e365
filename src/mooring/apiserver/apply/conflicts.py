"""Conflicts: fields that somebody applies although others own them, as an answer.

Comes in   the fields in conflict, by manager
Goes out   a 409, with a cause for each field
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.field_errors import quoted
from mooring.apiserver.apply.field_set import FieldSet, Path, paths
from mooring.apiserver.apply.managers import UPDATE, ManagerId
from mooring.apiserver.apply.path_elements import shown_path
from mooring.client.errors import Cause, ConflictError


def conflict_error(conflicts: Mapping[ManagerId, FieldSet]) -> ConflictError:
    """The refusal of an apply that takes fields from others."""
    managers = sorted(conflicts, key=lambda key: key.sort_text)
    listed: dict[ManagerId, list[Path]] = {key: list(paths(conflicts[key])) for key in managers}
    causes = [
        Cause("FieldManagerConflict", f"conflict with {shown_manager(key)}", shown_path(path))
        for key in managers
        for path in listed[key]
    ]
    if len(causes) == 1:
        return ConflictError(f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}", causes=causes)
    lines: list[str] = []
    for key in managers:
        lines.append(f"conflicts with {shown_manager(key)}:")
        lines += [f"- {shown_path(path)}" for path in listed[key]]
    return ConflictError(f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines), causes=causes)


def shown_manager(key: ManagerId) -> str:
    """A manager, as messages name him."""
    text = quoted(key.name)
    if key.subresource:
        text = f"{text} with subresource {quoted(key.subresource)}"
    return f"{text} using {key.api_version}" if key.operation == UPDATE else text
