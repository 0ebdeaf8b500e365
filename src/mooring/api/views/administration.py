"""Views for controllers: service accounts, cluster roles, quotas, definitions of custom kinds."""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from mooring.api.views.meta import ApiObject, Condition, LabelSelector, ObjectWithRaw, ResourceList, View


class ServiceAccount(ApiObject):
    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ServiceAccount"


class AggregationRule(View):
    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class ClusterRole(ApiObject):
    api_version: ClassVar[str] = "rbac.authorization.k8s.io/v1"
    kind: ClassVar[str] = "ClusterRole"

    aggregation_rule: AggregationRule | None = None
    rules: tuple[Mapping[str, tuple[str, ...]], ...] = ()


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


class DefinitionNames(View):
    plural: str = ""
    kind: str = ""


class DefinitionScale(View):
    """The paths of the replica fields in an object of the kind (`subresources.scale`)."""

    spec_replicas_path: str = ""


class DefinitionSubresources(View):
    scale: DefinitionScale | None = None


class DefinitionVersion(View):
    name: str = ""
    served: bool = False
    storage: bool = False
    subresources: DefinitionSubresources = DefinitionSubresources()


class CustomResourceDefinitionSpec(View):
    group: str = ""
    scope: str = ""
    names: DefinitionNames = DefinitionNames()
    versions: tuple[DefinitionVersion, ...] = ()


class CustomResourceDefinitionStatus(View):
    conditions: tuple[Condition, ...] = ()
    accepted_names: DefinitionNames = DefinitionNames()


class CustomResourceDefinition(ApiObject):
    api_version: ClassVar[str] = "apiextensions.k8s.io/v1"
    kind: ClassVar[str] = "CustomResourceDefinition"

    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
    status: CustomResourceDefinitionStatus = CustomResourceDefinitionStatus()
