"""Objects of any kind with all of their bytes, for components that pass objects on.

A view has lost the fields that it does not declare. An object that is sent on (to an extender) must have all of them.
"""

from __future__ import annotations

import msgspec

from mooring.api.decode import JsonBytes, register_decoder
from mooring.api.views.base import View
from mooring.api.views.meta import NO_METADATA, ApiObject, ObjectMeta


class Whole(ApiObject):
    """An object of any kind, with its metadata and, for a pod, its node; the rest is not decoded."""

    node_name: str = ""
    raw: bytes = b""


class _Spec(View):
    node_name: str = ""


class _MetadataAndNode(View):
    metadata: ObjectMeta = NO_METADATA
    spec: _Spec = _Spec()


class _WholeDecoder:
    def __init__(self) -> None:
        self._head = msgspec.json.Decoder(_MetadataAndNode)

    def decode(self, raw: JsonBytes) -> Whole:
        head = self._head.decode(raw)
        return Whole(metadata=head.metadata, node_name=head.spec.node_name, raw=bytes(raw))


register_decoder(Whole, _WholeDecoder())
