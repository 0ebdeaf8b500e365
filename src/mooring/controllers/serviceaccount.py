"""The service account controller: every namespace has an account named `default`.

Comes in   namespaces and accounts, from informers
Goes out   accounts created

 1. A namespace that goes gets none: it would be deleted at once, and the namespace would wait for it.
"""

from __future__ import annotations

from typing import ClassVar

from mooring.api.kinds import SERVICE_ACCOUNT
from mooring.api.views.accounts import ServiceAccount
from mooring.api.views.workloads import Namespace
from mooring.client.errors import AlreadyExistsError, ClientError
from mooring.controllers.context import DONE, Controller, Failed, Outcome, Workshop
from mooring.controllers.pod_control import is_namespace_terminating

ACCOUNT = "default"


class ServiceAccountController(Controller):
    name: ClassVar[str] = "serviceaccount-controller"

    def __init__(self, workshop: Workshop) -> None:
        super().__init__(workshop)
        self._namespaces = workshop.informers.informer(Namespace)
        self._accounts = workshop.informers.informer(ServiceAccount)
        self._namespaces.add_handler(
            self.name,
            on_add=lambda namespace, is_initial: self.queue.add(namespace.metadata.name),
            on_update=lambda old, new: self.queue.add(new.metadata.name),
        )
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
