"""JSON patches: a list of steps (RFC 6902).

Comes in   an object and the steps: add, remove, replace, move, copy, test
Goes out   a new object, with all steps done; or a `PatchError`, and none is done

It does what kube-apiserver v1.36 does, where that differs from the RFC too:
 1. `replace` of a field that is not there adds it; `copy` of one that is not there writes null; `test` of one that is
    not there holds if the wanted value is null or absent.
 2. A negative index counts from the end of a list, and `-` is the place behind its end for `add` alone.
 3. What stands before the first `/` of a path does not matter.
 4. 1 and 1.0 are different values to `test`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from mooring.api.patching.errors import BAD_REQUEST, UNPROCESSABLE, JsonDict, PatchError, cannot_decode

STEPS_MAX = 10_000
"""As many as kube-apiserver takes; with more it answers 413."""

Container: TypeAlias = "JsonDict | list[object]"

_TOO_LARGE = 413
_MISSING = "missing value"
_TEST_FAILED = "test failed"
_INVALID_INDEX = "invalid index referenced"


def apply_json_patch(current: Mapping[str, object], patch: object) -> JsonDict:
    """`current` after all steps of `patch`."""
    document: object = dict(current)
    for step in _steps(patch):
        name = step.get("op")
        action = _ACTIONS.get(name) if isinstance(name, str) else None
        if action is None:
            raise _refused(f"Unexpected kind: {name if isinstance(name, str) else 'unknown'}")
        document = action(cast(Container, document), step)
    if not isinstance(document, dict):
        raise cannot_decode(document, "map[string]interface {}")
    return cast(JsonDict, document)


def _steps(patch: object) -> list[JsonDict]:
    if not isinstance(patch, list):
        error = cannot_decode(patch, "[]handlers.jsonPatchOp")
        raise PatchError(f"error decoding patch: {error.message}", BAD_REQUEST)
    for step in patch:
        if not isinstance(step, dict):
            error = cannot_decode(step, "handlers.jsonPatchOp")
            raise PatchError(f"error decoding patch: {error.message}", BAD_REQUEST)
    if len(patch) > STEPS_MAX:
        text = f"The allowed maximum operations in a JSON patch is {STEPS_MAX}, got {len(patch)}"
        raise PatchError(text, _TOO_LARGE)
    return patch


# --- the steps, each from a document of our own to the next ------------------------------------------------------


def _add(document: Container, step: JsonDict) -> Container:
    path = _text_of(step, "path", "add operation failed to decode path: missing value")
    where, key = _place(document, path)
    if where is None:
        raise _refused(f'add operation does not apply: doc is missing path: "{path}": {_MISSING}')
    _insert(where, key, step.get("value"), f"error in add for path: '{path}': ")
    return document


def _remove(document: Container, step: JsonDict) -> Container:
    path = _text_of(step, "path", "remove operation failed to decode path: missing value")
    where, key = _place(document, path)
    if where is None:
        raise _refused(f'remove operation does not apply: doc is missing path: "{path}": {_MISSING}')
    _take_out(where, key, f"error in remove for path: '{path}': ")
    return document


def _replace(document: Container, step: JsonDict) -> Container:
    path = _text_of(
        step, "path", "replace operation failed to decode path: operation missing path field: missing value"
    )
    value = step.get("value")
    if path == "":
        if not isinstance(value, dict | list):
            raise _refused("replace operation value must be object or array: %!w(<nil>)")
        return value.copy()
    where, key = _place(document, path)
    if where is None:
        raise _refused(f"replace operation does not apply: doc is missing path: {path}: {_MISSING}")
    if isinstance(where, dict):
        where[key] = value
        return document
    try:
        where[_index(where, key)] = value
    except PatchError:
        raise _refused(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from None
    return document


def _move(document: Container, step: JsonDict) -> Container:
    source = _text_of(
        step, "from", "move operation failed to decode from: operation, missing from field: missing value"
    )
    where, key = _place(document, source)
    if where is None:
        raise _refused(f"move operation does not apply: doc is missing from path: {source}: {_MISSING}")
    value = _take_out(where, key, f"error in move for path: '{key}': ")
    path = _text_of(step, "path", "move operation failed to decode path: operation missing path field: missing value")
    where, key = _place(document, path)
    if where is None:
        raise _refused(f"move operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    _insert(where, key, value, f"error in move for path: '{path}': ")
    return document


def _copy(document: Container, step: JsonDict) -> Container:
    source = _text_of(
        step, "from", "copy operation failed to decode from: operation, missing from field: missing value"
    )
    where, key = _place(document, source)
    if where is None:
        raise _refused(f"copy operation does not apply: doc is missing from path: {source}: {_MISSING}")
    value = _value_at(where, key, f"error in copy for from: '{source}': ")
    path = _text_of(step, "path", "copy operation failed to decode path: missing value")
    where, key = _place(document, path)
    if where is None:
        raise _refused(f"copy operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    # The same value in two places is safe: whoever changes something below copies the way to it first.
    _insert(where, key, value, "error while adding value during copy: ")
    return document


def _test(document: Container, step: JsonDict) -> Container:
    path = _text_of(step, "path", "test operation failed to decode path: operation missing path field: missing value")
    wanted = step.get("value")
    if path == "":
        found: object = document
    else:
        where, key = _place(document, path)
        if where is None:
            raise _refused(f"test operation does not apply: is missing path: {path}: {_MISSING}")
        found = _value_at(where, key, f"error in test for path: '{path}': ")
    if not _is_same(found, wanted):
        raise _refused(f"testing value {path} failed: {_TEST_FAILED}")
    return document


_ACTIONS: Mapping[str, Callable[[Container, JsonDict], Container]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


# --- places ------------------------------------------------------------------------------------------------------


def _place(document: Container, path: str) -> tuple[Container | None, str]:
    """The container that a path leads into, and the key there. The way to it is copied, so that it may be changed."""
    tokens = path.split("/")
    if len(tokens) < 2:
        return None, ""
    where = document
    for token in tokens[1:-1]:
        step = _decoded(token)
        try:
            inner = _value_at(where, step, "")
        except PatchError:
            return None, ""
        if not isinstance(inner, dict | list):
            return None, ""
        own: Container = inner.copy()
        if isinstance(where, dict):
            where[step] = own
        else:
            where[_index(where, step)] = own
        where = own
    return where, _decoded(tokens[-1])


def _decoded(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


def _value_at(where: Container, key: str, blame: str) -> object:
    if isinstance(where, dict):
        return where.get(key)
    return where[_index(where, key, blame)]


def _insert(where: Container, key: str, value: object, blame: str) -> None:
    if isinstance(where, dict):
        where[key] = value
    elif key == "-":
        where.append(value)
    else:
        number = _number(key, f"{blame}value was not a proper array index: '{key}': ")
        where.insert(_within(number, len(where) + 1, blame), value)


def _take_out(where: Container, key: str, blame: str) -> object:
    if isinstance(where, list):
        return where.pop(_index(where, key, blame))
    if key not in where:
        raise _refused(blame + f"Unable to remove nonexistent key: {key}: {_MISSING}")
    return where.pop(key)


def _index(where: list[object], key: str, blame: str = "") -> int:
    return _within(_number(key, blame), len(where), blame)


def _number(key: str, blame: str) -> int:
    digits = key[1:] if key[:1] in ("+", "-") else key
    if not (digits.isascii() and digits.isdigit()):
        raise _refused(blame + f'strconv.Atoi: parsing "{key}": invalid syntax')
    return int(key)


def _within(number: int, size: int, blame: str) -> int:
    if not -size <= number < size:
        raise _refused(blame + f"Unable to access invalid index: {number}: {_INVALID_INDEX}")
    return number + size if number < 0 else number


# --- words and comparisons ---------------------------------------------------------------------------------------


def _refused(text: str) -> PatchError:
    return PatchError(text, UNPROCESSABLE)


def _text_of(step: JsonDict, field: str, refusal: str) -> str:
    value = step.get(field)
    if not isinstance(value, str):
        raise _refused(refusal)
    return value


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return type(one) is type(other) and one == other
