"""View of CustomResourceDefinitions, as far as clients of their objects need them. Schemas are not decoded."""

from typing import ClassVar

from mooring.api.views.base import View
from mooring.api.views.meta import ApiObject, Condition


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
