"""The special kinds with which users define kinds."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api import kinds
from mooring.api.kinds import Kind
from mooring.apiserver.kinds.custom_resource_definition.strategy import CustomResourceDefinitionStrategy
from mooring.apiserver.strategy import Strategy

STRATEGIES: Mapping[Kind, type[Strategy]] = {
    kinds.CUSTOM_RESOURCE_DEFINITION: CustomResourceDefinitionStrategy,
}
