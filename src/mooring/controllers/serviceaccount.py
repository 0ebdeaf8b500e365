"""Objects that every namespace has: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`.

Inputs: namespaces, ServiceAccounts and ConfigMaps, from informers. Outputs: both objects, created or restored. Pods
verify the API server with the CA certificate in the ConfigMap.

1. A terminating namespace gets neither: its deletion would have to wait for them.
2. A ConfigMap with other data is restored, and a deleted one is created again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from mooring.api.kinds import CONFIG_MAP, SERVICE_ACCOUNT, place_of
from mooring.api.views.administration import ServiceAccount
from mooring.api.views.meta import ObjectWithRaw
from mooring.api.views.workloads import Namespace
from mooring.api.well_known import DESCRIPTION_ANNOTATION, ROOT_CA_CONFIG_MAP
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError
from mooring.client.interface import Selection
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome
from mooring.controllers.documents import document_of, is_namespace_terminating

ACCOUNT = "default"
KEY = "ca.crt"
DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class ServiceAccountController(Controller):
    """Keys are namespaces. Creates the ServiceAccount `default`."""

    name: ClassVar[str] = "serviceaccount-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._namespaces = context.informers.informer(Namespace)
        self._accounts = context.informers.informer(ServiceAccount)
        self.handle_changes(self._namespaces, lambda namespace: self.queue.add(namespace.metadata.name))
        self._accounts.add_handler(self.name, on_delete=lambda account: self.queue.add(account.metadata.namespace))

    async def sync(self, key: str) -> Outcome:
        namespace = self._namespaces.lister.get("", key)
        if namespace is None or namespace.status.phase != "Active":
            return DONE
        if self._accounts.lister.get(key, ACCOUNT) is not None:
            return DONE
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": key}}
        try:
            await self.client.create(SERVICE_ACCOUNT, key, account, is_answer_wanted=False)
        except AlreadyExistsError:
            return DONE
        except ClientError as error:
            return DONE if is_namespace_terminating(error) else Failed(str(error))
        return DONE


class RootCaConfigMap(ObjectWithRaw):
    """A view of the ConfigMap `kube-root-ca.crt`."""

    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ConfigMap"

    data: Mapping[str, str] = field(default_factory=dict)


class RootCaCertificatePublisher(Controller):
    """Keys are namespaces. Creates the ConfigMap `kube-root-ca.crt`."""

    name: ClassVar[str] = "root-ca-certificate-publisher-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._data = {KEY: context.root_ca_pem}
        only_ours = Selection(fields=f"metadata.name={ROOT_CA_CONFIG_MAP}")
        self._config_maps = context.informers.informer(RootCaConfigMap, only_ours)
        self._config_maps.add_handler(
            self.name,
            on_update=lambda old, new: self.queue.add(new.metadata.namespace),
            on_delete=lambda config_map: self.queue.add(config_map.metadata.namespace),
        )
        context.informers.informer(Namespace).add_handler(
            self.name,
            on_add=lambda namespace: self.queue.add(namespace.metadata.name),
            on_update=lambda old, new: self.queue.add(new.metadata.name) if new.status.phase == "Active" else None,
        )

    async def sync(self, key: str) -> Outcome:
        found = self._config_maps.lister.get(key, ROOT_CA_CONFIG_MAP)
        try:
            if found is None:
                await self._create(key)
            elif found.data != self._data or not found.metadata.annotations.get(DESCRIPTION_ANNOTATION):
                await self._update(found)
        except ClientError as error:
            return Failed(str(error))
        return DONE

    async def _create(self, namespace: str) -> None:
        metadata = {
            "name": ROOT_CA_CONFIG_MAP,
            "namespace": namespace,
            "annotations": {DESCRIPTION_ANNOTATION: DESCRIPTION},
        }
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self._data}
        try:
            await self.client.create(CONFIG_MAP, namespace, config_map, is_answer_wanted=False)
        except NotFoundError:
            return  # the namespace is gone
        except ClientError as error:
            if not is_namespace_terminating(error):
                raise

    async def _update(self, found: RootCaConfigMap) -> None:
        document = document_of(found)
        document["data"] = self._data
        annotations = document["metadata"].get("annotations") or {}
        document["metadata"]["annotations"] = {**annotations, DESCRIPTION_ANNOTATION: DESCRIPTION}
        await self.client.update(*place_of(found), document)
