"""Whole objects: the bytes themselves, for whoever has to pass an object on.

Comes in   JSON
Goes out   `Whole`: who the object is, and all of it

A view has lost what it does not know. What is sent to somebody else (an extender) must not.
"""

from __future__ import annotations

import msgspec

from mooring.api.decode import JsonBytes, register_decoder
from mooring.api.views.base import View
from mooring.api.views.meta import NO_METADATA, ApiObject, ObjectMeta


class Whole(ApiObject):
    """An object of any kind, unread but for its metadata and, if it is a pod, its node."""

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
