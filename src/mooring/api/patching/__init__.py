"""Patching: what becomes of an object when somebody sends only what should change.

    json_patch    a list of steps (RFC 6902)
    merge_patch   an object that is laid over another one (RFC 7386)
    strategic     the same, with lists whose items have names; Kubernetes' own
    merge_keys    which lists those are, as a table by kind

Comes in   plain dictionaries: an object as it is, and a patch
Goes out   a new dictionary; or a `PatchError` with the text and the code of kube-apiserver v1.36

1. Nothing that comes in is changed. What a patch leaves alone is shared with the result, not copied.
2. A result is JSON; whether it is a good object is for others to say.
"""

from mooring.api.patching.errors import PatchError
from mooring.api.patching.json_patch import apply_json_patch
from mooring.api.patching.merge_patch import apply_merge_patch
from mooring.api.patching.strategic import apply_strategic_patch

__all__ = ["PatchError", "apply_json_patch", "apply_merge_patch", "apply_strategic_patch"]
