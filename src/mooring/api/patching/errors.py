"""What can be wrong with a patch, and how Kubernetes says it.

Comes in   the sentence about the error
Goes out   `PatchError`, with the code that an API server answers; values as Go prints them, which those sentences quote

 1. A patch that cannot be read is a 400, one that does not apply a 422, one that contradicts itself a 500.
 2. For a 422 kube-apiserver keeps the sentence to itself and shows a general one: that is `status_message`.
"""

from __future__ import annotations

from typing import TypeAlias

from mooring.api.errors import ObjectError

JsonDict: TypeAlias = dict[str, object]

BAD_REQUEST = 400
UNPROCESSABLE = 422
INTERNAL = 500

_GENERAL_SENTENCE = "the server rejected our request due to an error in our request"


class PatchError(ObjectError):
    """A patch cannot be read, or does not apply to this object."""

    def __init__(self, message: str, code: int = INTERNAL) -> None:
        super().__init__(message)
        self.message = message
        self.code = code

    @property
    def status_message(self) -> str:
        """What a client of the API server gets to read."""
        return _GENERAL_SENTENCE if self.code == UNPROCESSABLE else self.message


def no_merge_key(item: JsonDict, merge_key: str) -> PatchError:
    return PatchError(f"map: {go_text(item)} does not contain declared merge key: {merge_key}")


def unknown_directive(directive: object, where: JsonDict) -> PatchError:
    return PatchError(f"unknown patch type: {go_text(directive)} in map: {go_text(where)}")


def wrong_type(wanted: str, found: object) -> PatchError:
    return PatchError(f"expected a {wanted}, but received a {_go_type(found)}")


def cannot_decode(found: object, wanted: str) -> PatchError:
    """What Go's JSON decoder says of a value that is not of the wanted type."""
    return PatchError(f"json: cannot unmarshal {_json_type(found)} into Go value of type {wanted}", BAD_REQUEST)


def go_text(value: object) -> str:
    """A value as Go's `%v` prints it; messages of kube-apiserver quote objects so."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
        case list():
            return "[" + " ".join(go_text(item) for item in value) + "]"
        case _:
            return str(value)


_GO_TYPES: dict[type, str] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "%!s(<nil>)",
}
_JSON_TYPES: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool", type(None): "null"}


def _go_type(value: object) -> str:
    return _GO_TYPES.get(type(value), type(value).__name__)


def _json_type(value: object) -> str:
    return _JSON_TYPES.get(type(value), "number")
