"""Views of EndpointSlices and Endpoints.

1. Conditions have three values: an endpoint without `ready` is ready.
"""

from typing import ClassVar

from mooring.api.views.meta import Int32, ObjectReference, ObjectWithRaw, View


class EndpointConditions(View):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForZone(View):
    name: str = ""


class ForNode(View):
    name: str = ""


class EndpointHints(View):
    for_zones: tuple[ForZone, ...] = ()
    for_nodes: tuple[ForNode, ...] = ()


class Endpoint(View):
    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    node_name: str | None = None
    zone: str | None = None
    hints: EndpointHints | None = None


class EndpointPort(View):
    name: str | None = None
    protocol: str | None = None
    port: Int32 | None = None
    app_protocol: str | None = None


class EndpointSlice(ObjectWithRaw):
    api_version: ClassVar[str] = "discovery.k8s.io/v1"
    kind: ClassVar[str] = "EndpointSlice"

    address_type: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(ObjectWithRaw):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "Endpoints"
