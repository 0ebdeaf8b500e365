"""A definition of a custom kind, as far as somebody needs it who wants to ask for its objects.

Comes in   `apiextensions.k8s.io/v1` definitions
Goes out   `CustomResourceDefinition`; its schemas are not read
"""

from typing import ClassVar

from mooring.api.views.base import View
from mooring.api.views.meta import ApiObject, Condition


class DefinitionNames(View):
    plural: str = ""
    kind: str = ""


class DefinitionScale(View):
    """Where an object of the kind says how many replicas it wants."""

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
