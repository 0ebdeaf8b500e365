"""The special kinds of the core group, pods and their controllers apart."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api import kinds
from mooring.api.kinds import Kind
from mooring.apiserver.kinds.config_map import ConfigMapStrategy
from mooring.apiserver.kinds.endpoints import EndpointsStrategy
from mooring.apiserver.kinds.event import EventStrategy
from mooring.apiserver.kinds.limit_range import LimitRangeStrategy
from mooring.apiserver.kinds.namespace import NamespaceStrategy
from mooring.apiserver.kinds.node import NodeStrategy
from mooring.apiserver.kinds.persistent_volume import PersistentVolumeStrategy
from mooring.apiserver.kinds.persistent_volume_claim import PersistentVolumeClaimStrategy
from mooring.apiserver.kinds.resource_quota import ResourceQuotaStrategy
from mooring.apiserver.kinds.secret import SecretStrategy
from mooring.apiserver.kinds.service.strategy import ServiceStrategy
from mooring.apiserver.kinds.service_account import ServiceAccountStrategy
from mooring.apiserver.strategy import Strategy

STRATEGIES: Mapping[Kind, type[Strategy]] = {
    kinds.CONFIG_MAP: ConfigMapStrategy,
    kinds.CORE_EVENT: EventStrategy,
    kinds.ENDPOINTS: EndpointsStrategy,
    kinds.EVENT: EventStrategy,
    kinds.LIMIT_RANGE: LimitRangeStrategy,
    kinds.NAMESPACE: NamespaceStrategy,
    kinds.NODE: NodeStrategy,
    kinds.PERSISTENT_VOLUME: PersistentVolumeStrategy,
    kinds.PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaimStrategy,
    kinds.RESOURCE_QUOTA: ResourceQuotaStrategy,
    kinds.SECRET: SecretStrategy,
    kinds.SERVICE: ServiceStrategy,
    kinds.SERVICE_ACCOUNT: ServiceAccountStrategy,
}
