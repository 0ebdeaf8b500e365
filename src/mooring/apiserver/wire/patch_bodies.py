"""Bodies of patches: from bytes to a patch, with Go's messages for what cannot be read.

Comes in   the bytes of a PATCH, and the form that its content type names
Goes out   a `Patch`; or a 400

 1. Keys that come twice in a patch are strict errors of the patch, told before those of its result.
"""

from __future__ import annotations

import msgspec

from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.registry.patches import Patch
from mooring.apiserver.wire.examine import repeated_fields
from mooring.apiserver.wire.json_syntax import BodySyntaxError
from mooring.apiserver.wire.json_text import has_repeated_keys, parse_carefully, plain
from mooring.apiserver.wire.nesting import check_nesting
from mooring.apiserver.wire.yaml_text import parse_yaml
from mooring.client.errors import BadRequestError
from mooring.client.interface import PatchForm

_STEPS = "[]handlers.jsonPatchOp"
_OBJECT = "map[string]interface {}"
_STEP_FIELDS = ("op", "path", "from", "value")
_JSON_TYPES: dict[type, str] = {str: "string", bool: "bool", list: "array", dict: "object", type(None): "null"}


def read_patch(data: bytes, form: PatchForm, call: Call) -> Patch:
    """The patch in a body. Raises `BadRequestError`."""
    if form is PatchForm.APPLY:
        return _read_apply(data, call)
    is_strategic = form is PatchForm.STRATEGIC
    try:
        content, errors = _read_json(data)
    except BodySyntaxError as error:
        raise BadRequestError(str(error) if is_strategic else f"error decoding patch: {error}") from None
    wanted = list if form is PatchForm.JSON else dict
    if content is None:
        if form is PatchForm.MERGE:
            raise BadRequestError("Invalid JSON Patch")
        content = wanted()
    if not isinstance(content, wanted):
        name = _STEPS if wanted is list else _OBJECT
        text = f"json: cannot unmarshal {_json_type(content)} into Go value of type {name}"
        raise BadRequestError(text if is_strategic else f"error decoding patch: {text}")
    if form is PatchForm.JSON:
        errors = [f"json patch {error}" for error in errors]
        errors += _strange_step_fields(content)
    return Patch(form, content, tuple(errors) if call.field_validation is not FieldValidation.IGNORE else ())


def _read_json(data: bytes) -> tuple[object, list[str]]:
    try:
        content = msgspec.json.decode(data)
        check_nesting(data, content)
        if msgspec.json.encode(content) == data.rstrip():
            return content, []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    careful = parse_carefully(data)
    return plain(careful), repeated_fields(careful) if has_repeated_keys(careful) else []


def _read_apply(data: bytes, call: Call) -> Patch:
    try:
        content, errors = parse_yaml(data)
    except BodySyntaxError as error:
        raise BadRequestError(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if content is None:
        content = {}
    if not isinstance(content, dict):
        text = f"json: cannot unmarshal {_json_type(content)} into Go value of type {_OBJECT}"
        raise BadRequestError(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {text}")
    if errors and call.field_validation is FieldValidation.STRICT:
        message = "error converting YAML to JSON: " + errors[0]
        raise BadRequestError(f"error strict decoding YAML: {message}")
    return Patch(PatchForm.APPLY, content, tuple(errors))


def _strange_step_fields(steps: object) -> list[str]:
    found: list[str] = []
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        for name in step if isinstance(step, dict) else ():
            if name not in _STEP_FIELDS:
                found.append(f'json patch unknown field "[{index}].{name}"')
    return found


def _json_type(value: object) -> str:
    return _JSON_TYPES.get(type(value), "number")
