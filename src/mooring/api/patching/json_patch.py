"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386); errors of patches, with the texts of Kubernetes.

Input: an object and a list of operations (add, remove, replace, move, copy, test). Output: a new object with all
operations applied, or a `PatchError` and no change.

The behaviour is that of kube-apiserver v1.36, also where it differs from the RFC:
 1. `replace` of a missing field adds it; `copy` of a missing field writes null; `test` of a missing field passes if the
    expected value is null or absent.
 2. A negative index counts from the end of a list. `-` is the place behind the last item, for `add` only.
 3. The text before the first `/` of a path is ignored.
 4. `test` distinguishes 1 and 1.0.
 5. `copy` operations may copy COPIED_BYTES_MAX in total. Without that limit twenty copies of a document into itself
    grow it a million times.

Cost: linear in the size of the object and of the patch, because each container is copied at most once.

In a merge patch:
 6. `null` removes a field. A field that is an object on both sides is merged; anything else is replaced.
 7. New values lose their nulls, also inside of lists, as in kube-apiserver. The RFC would keep those in lists.

Errors, also those of strategic merge patches:
 8. A patch that cannot be parsed is a 400, one that does not apply a 422, one that contradicts itself a 500.
 9. For a 422 kube-apiserver shows a general message instead of the reason: `status_message`.
10. Texts quote values as Go prints them (`go_text`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

import msgspec

from mooring.api.document import copied_json, same_json, without_nulls
from mooring.api.errors import ObjectError
from mooring.api.field_errors import go_text, go_type, json_type

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


def wrong_type(expected: str, found: object) -> PatchError:
    found_type = "%!s(<nil>)" if found is None else go_type(found)
    return PatchError(f"expected a {expected}, but received a {found_type}")


def cannot_decode(found: object, expected: str) -> PatchError:
    """The message of Go's JSON decoder for a value of the wrong type."""
    return PatchError(f"json: cannot unmarshal {json_type(found)} into Go value of type {expected}", BAD_REQUEST)


OPERATIONS_MAX = 10_000
"""kube-apiserver's limit. A longer patch is answered with 413."""

COPIED_BYTES_MAX = 3 * 1024 * 1024
"""kube-apiserver's limit for what all `copy` operations of a patch copy, as JSON. Beyond it the answer is 422."""

Container: TypeAlias = "JsonDict | list[object]"

_INDEX_DIGITS_MAX = 18
"""All such numbers fit 64 bits. No list is that long."""

_TOO_LARGE = 413
_MISSING = "missing value"
_TEST_FAILED = "test failed"
_INVALID_INDEX = "invalid index referenced"


def apply_json_patch(current: Mapping[str, object], patch: object) -> JsonDict:
    """Return `current` after all operations of `patch`. Neither argument changes."""
    return _PatchedDocument(current).apply(_operations(patch))


def _operations(patch: object) -> list[JsonDict]:
    if not isinstance(patch, list):
        error = cannot_decode(patch, "[]handlers.jsonPatchOp")
        raise PatchError(f"error decoding patch: {error.message}", BAD_REQUEST)
    for operation in patch:
        if not isinstance(operation, dict):
            error = cannot_decode(operation, "handlers.jsonPatchOp")
            raise PatchError(f"error decoding patch: {error.message}", BAD_REQUEST)
    if len(patch) > OPERATIONS_MAX:
        text = f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(patch)}"
        raise PatchError(text, _TOO_LARGE)
    return patch


class _PatchedDocument:
    """A document that operations change in place. Containers of the original are copied before their first change."""

    def __init__(self, original: Mapping[str, object]) -> None:
        self._root: Container = dict(original)
        self._owned: set[int] = set()  # ids of copies made here. All are newer than the original and the patch.
        self._copied_bytes = 0

    def apply(self, operations: list[JsonDict]) -> JsonDict:
        for operation in operations:
            match operation.get("op"):
                case "add":
                    self._add(operation)
                case "remove":
                    self._remove(operation)
                case "replace":
                    self._replace(operation)
                case "move":
                    self._move(operation)
                case "copy":
                    self._copy(operation)
                case "test":
                    self._test(operation)
                case name:
                    raise _rejected(f"Unexpected kind: {name if isinstance(name, str) else 'unknown'}")
        if not isinstance(self._root, dict):
            raise cannot_decode(self._root, "map[string]interface {}")
        return self._root

    def _add(self, operation: JsonDict) -> None:
        path = _text_of(operation, "path", "add operation failed to decode path: missing value")
        where, key = self._container_of(path, f'add operation does not apply: doc is missing path: "{path}"')
        _insert(where, key, operation.get("value"), f"error in add for path: '{path}': ")

    def _remove(self, operation: JsonDict) -> None:
        path = _text_of(operation, "path", "remove operation failed to decode path: missing value")
        where, key = self._container_of(path, f'remove operation does not apply: doc is missing path: "{path}"')
        _take_out(where, key, f"error in remove for path: '{path}': ")

    def _replace(self, operation: JsonDict) -> None:
        path = _text_of(
            operation, "path", "replace operation failed to decode path: operation missing path field: missing value"
        )
        value = operation.get("value")
        if path == "":
            if not isinstance(value, dict | list):
                raise _rejected("replace operation value must be object or array: %!w(<nil>)")
            self._root = value.copy()
            return
        where, key = self._container_of(path, f"replace operation does not apply: doc is missing path: {path}")
        if isinstance(where, dict):
            where[key] = value
            return
        try:
            where[_index(where, key)] = value
        except PatchError:
            raise _rejected(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from None

    def _move(self, operation: JsonDict) -> None:
        source = _text_of(
            operation, "from", "move operation failed to decode from: operation, missing from field: missing value"
        )
        where, key = self._container_of(source, f"move operation does not apply: doc is missing from path: {source}")
        value = _take_out(where, key, f"error in move for path: '{key}': ")
        path = _text_of(
            operation, "path", "move operation failed to decode path: operation missing path field: missing value"
        )
        where, key = self._container_of(path, f"move operation does not apply: doc is missing destination path: {path}")
        _insert(where, key, value, f"error in move for path: '{path}': ")

    def _copy(self, operation: JsonDict) -> None:
        source = _text_of(
            operation, "from", "copy operation failed to decode from: operation, missing from field: missing value"
        )
        where, key = self._container_of(source, f"copy operation does not apply: doc is missing from path: {source}")
        value = _value_at(where, key, f"error in copy for from: '{source}': ")
        path = _text_of(operation, "path", "copy operation failed to decode path: missing value")
        where, key = self._container_of(path, f"copy operation does not apply: doc is missing destination path: {path}")
        _insert(where, key, self._copy_within_limit(value), "error while adding value during copy: ")

    def _test(self, operation: JsonDict) -> None:
        path = _text_of(
            operation, "path", "test operation failed to decode path: operation missing path field: missing value"
        )
        expected = operation.get("value")
        if path == "":
            found: object = self._root
        else:
            where, key = self._container_of(path, f"test operation does not apply: is missing path: {path}")
            found = _value_at(where, key, f"error in test for path: '{path}': ")
        if not same_json(found, expected):
            raise _rejected(f"testing value {path} failed: {_TEST_FAILED}")

    def _container_of(self, path: str, blame: str) -> tuple[Container, str]:
        """The container of a path, and the key in it. The containers on the path are copied before they are changed.

        Raises `PatchError`, which begins with `blame`, if there is no container.
        """
        missing = _rejected(f"{blame}: {_MISSING}")
        tokens = path.split("/")
        if len(tokens) < 2:
            raise missing
        where = self._root
        for token in tokens[1:-1]:
            key = _decoded(token)
            try:
                inner = _value_at(where, key, "")
            except PatchError:
                raise missing from None
            if not isinstance(inner, dict | list):
                raise missing
            if id(inner) not in self._owned:
                inner = cast(Container, inner.copy())
                self._owned.add(id(inner))
                if isinstance(where, dict):
                    where[key] = inner
                else:
                    where[_index(where, key)] = inner
            where = inner
        return where, _decoded(tokens[-1])

    def _copy_within_limit(self, value: object) -> object:
        if value is not None:
            self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > COPIED_BYTES_MAX:
            raise _rejected(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied_bytes}, exceeding the limit {COPIED_BYTES_MAX}"
            )
        return copied_json(value)


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
        raise _rejected(blame + f"Unable to remove nonexistent key: {key}: {_MISSING}")
    return where.pop(key)


def _index(where: list[object], key: str, blame: str = "") -> int:
    return _within(_number(key, blame), len(where), blame)


def _number(key: str, blame: str) -> int:
    digits = key[1:] if key[:1] in ("+", "-") else key
    if not (digits.isascii() and digits.isdigit()):
        raise _rejected(blame + f'strconv.Atoi: parsing "{key}": invalid syntax')
    if len(digits) > _INDEX_DIGITS_MAX:
        raise _rejected(blame + f'strconv.Atoi: parsing "{key}": value out of range')
    return int(key)


def _within(number: int, size: int, blame: str) -> int:
    if not -size <= number < size:
        raise _rejected(blame + f"Unable to access invalid index: {number}: {_INVALID_INDEX}")
    return number + size if number < 0 else number


def _rejected(text: str) -> PatchError:
    return PatchError(text, UNPROCESSABLE)


def _text_of(operation: JsonDict, field: str, message: str) -> str:
    value = operation.get(field)
    if not isinstance(value, str):
        raise _rejected(message)
    return value


def apply_merge_patch(current: Mapping[str, object], patch: object) -> JsonDict:
    """`current` with `patch` laid over it."""
    if patch is None:
        raise PatchError("Invalid JSON Patch", BAD_REQUEST)
    if not isinstance(patch, dict):
        error = cannot_decode(patch, "map[string]interface {}")
        raise PatchError(f"error decoding patch: {error.message}", BAD_REQUEST)
    return _merged(current, cast(JsonDict, patch))


def _merged(current: Mapping[str, object], patch: JsonDict) -> JsonDict:
    result = dict(current)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
            continue
        before = result.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            result[name] = _merged(before, value)
        else:
            result[name] = without_nulls(value)
    return result
