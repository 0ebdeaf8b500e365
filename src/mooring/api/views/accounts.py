"""Views of service accounts, and of cluster roles as far as controllers read them. Rules are not decoded."""

from collections.abc import Mapping
from typing import ClassVar

from mooring.api.views.base import View
from mooring.api.views.meta import ApiObject
from mooring.api.views.selectors import LabelSelector


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
