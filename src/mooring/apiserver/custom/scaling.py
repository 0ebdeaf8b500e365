"""The Scale of a custom object.

Input: an object and the paths of its replicas; a Scale. Output: the object's Scale; the object with the replicas of the
Scale; field errors of its replicas.

1. An object without replicas has no Scale to read, but a Scale can be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mooring.api.document import Document
from mooring.api.field_errors import go_json, go_type
from mooring.api.kinds import Kind
from mooring.apiserver.errors import internal, plain_error
from mooring.apiserver.kinds.scale import scale_document
from mooring.apiserver.resources import ScaleRules
from mooring.apiserver.validation.fields import FieldError, invalid
from mooring.client.errors import BadRequestError

REPLICAS_MAX = 2**31 - 1
_UNSAID = -(2**31)
"""The replicas of an object without replicas, as a patch sees them: no valid value."""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The paths of replicas and selector in an object, from its definition."""

    spec_replicas: str
    status_replicas: str
    selector: str = ""


def scale_rules(paths: ScalePaths) -> ScaleRules:
    """Converts objects of a custom kind to a Scale, and writes a Scale back."""
    scales = _Scales(paths)
    return ScaleRules(
        scale_of=scales.scale_of,
        scaled=scales.scaled,
        replicas_path=tuple(f"f:{name}" for name in _names(paths.spec_replicas)),
        shown=scales.shown,
        validate=lambda scale: [],
    )


def validate_spec_replicas(obj: Document, paths: ScalePaths) -> list[FieldError]:
    return _validate_count(obj, paths.spec_replicas)


def validate_status_replicas(obj: Document, paths: ScalePaths) -> list[FieldError]:
    errors = _validate_count(obj, paths.status_replicas)
    if paths.selector:
        try:
            _text_at(obj, paths.selector)
        except _WrongType as error:
            errors.append(invalid(paths.selector, "", str(error)))
    return errors


class _WrongType(Exception):
    """The value at the path of the replicas or the selector has a wrong type."""


class _Scales:
    def __init__(self, paths: ScalePaths) -> None:
        self._paths = paths

    def scale_of(self, kind: Kind, obj: Document) -> Document:
        """The Scale as a writer sees it."""
        scale, is_said = self._scale(obj)
        if not is_said:
            scale["spec"] = {"replicas": _UNSAID}
        return scale

    def shown(self, kind: Kind, obj: Document) -> Document:
        """The Scale as a reader sees it."""
        scale, is_said = self._scale(obj)
        if not is_said:
            raise internal(f'the spec replicas field "{self._paths.spec_replicas}" does not exist')
        return scale

    def scaled(self, obj: Document, scale: Document) -> Document:
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if replicas == _UNSAID:
            raise BadRequestError(f'the spec replicas field "{self._paths.spec_replicas}" cannot be empty')
        metadata = dict(obj["metadata"])
        revision = scale["metadata"].get("resourceVersion")
        if revision:
            metadata["resourceVersion"] = revision
        return _with({**obj, "metadata": metadata}, _names(self._paths.spec_replicas), replicas)

    def _scale(self, obj: Document) -> tuple[Document, bool]:
        paths = self._paths
        try:
            spec_replicas, status_replicas = _count_at(obj, paths.spec_replicas), _count_at(obj, paths.status_replicas)
            selector = _text_at(obj, paths.selector) if paths.selector else ""
        except _WrongType as error:
            raise plain_error(str(error)) from None
        return scale_document(obj, spec_replicas or 0, status_replicas or 0, selector), spec_replicas is not None


def _validate_count(obj: Document, path: str) -> list[FieldError]:
    try:
        count = _count_at(obj, path) or 0
    except _WrongType as error:
        return [invalid(path, 0, str(error))]
    if count < 0:
        return [invalid(path, count, "should be a non-negative integer")]
    if count > REPLICAS_MAX:
        return [invalid(path, count, f"should be less than or equal to {REPLICAS_MAX}")]
    return []


def _count_at(obj: Document, path: str) -> int | None:
    found = _find(obj, path)
    if found is None:
        return None
    value = found[0]
    if isinstance(value, bool) or not isinstance(value, int):
        raise _WrongType(f"{path} accessor error: {_shown(value)} is of the type {go_type(value)}, expected int64")
    return value


def _text_at(obj: Document, path: str) -> str:
    found = _find(obj, path)
    if found is None:
        return ""
    if not isinstance(found[0], str):
        shown = _shown(found[0])
        raise _WrongType(f"{path} accessor error: {shown} is of the type {go_type(found[0])}, expected string")
    return found[0]


def _find(obj: Document, path: str) -> tuple[Any] | None:
    """The value at a path, in a tuple because it may be null; None if it is absent."""
    value: Any = obj
    names = _names(path)
    for index, name in enumerate(names):
        if not isinstance(value, dict):
            if value is None:
                return None
            at = "." + ".".join(names[: index + 1])
            kind = f"{_shown(value)} is of the type {go_type(value)}, expected map[string]interface{{}}"
            raise _WrongType(f"{at} accessor error: {kind}")
        if name not in value:
            return None
        value = value[name]
    return (value,)


def _names(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def _with(obj: Document, names: list[str], value: object) -> Document:
    """A copy of an object with a value at a path. Missing parents are created."""
    name, *rest = names
    if not rest:
        return {**obj, name: value}
    below = obj.get(name, {})
    if not isinstance(below, dict):
        raise plain_error(f"value cannot be set because {'.' + name} is not a map[string]interface{{}}")
    return {**obj, name: _with(below, rest, value)}


def _shown(value: Any) -> str:
    if value is None:
        return "<nil>"
    return value if isinstance(value, str) else go_json(value)
