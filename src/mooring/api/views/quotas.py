"""View of ResourceQuotas: limits and usage."""

from typing import ClassVar

from msgspec import field

from mooring.api.views.base import ResourceList, View
from mooring.api.views.meta import ObjectWithRaw


class ScopeRequirement(View):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(View):
    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(View):
    hard: ResourceList = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(View):
    hard: ResourceList = field(default_factory=dict)
    used: ResourceList = field(default_factory=dict)


class ResourceQuota(ObjectWithRaw):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ResourceQuota"

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()
