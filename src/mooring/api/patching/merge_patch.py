"""JSON merge patch (RFC 7386).

1. `null` removes a field. A field that is an object on both sides is merged; anything else is replaced.
2. New values lose their nulls, also inside of lists, as in kube-apiserver. The RFC would keep those in lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mooring.api.patching.errors import BAD_REQUEST, JsonDict, PatchError, cannot_decode


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
            result[name] = _without_nulls(value)
    return result


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
