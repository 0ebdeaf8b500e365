"""ServiceAccount (v1)."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import NAME_AND_AGE
from mooring.apiserver.validation.fields import FieldError

ENFORCE_MOUNTABLE_SECRETS = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountStrategy(Strategy):
    """Writing a service account."""

    table = NAME_AND_AGE

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        _keep_names_only(obj)

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        _keep_names_only(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = self.validate_meta_update(obj, old)
        return errors + self.validate(obj, call)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _service_account_warnings(obj)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        return [] if ENFORCE_MOUNTABLE_SECRETS in _annotations(old) else _service_account_warnings(obj)


def _keep_names_only(account: Document) -> None:
    secrets = account.get("secrets")
    if secrets:
        account["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in secrets]


def _service_account_warnings(account: Document) -> list[str]:
    if ENFORCE_MOUNTABLE_SECRETS not in _annotations(account):
        return []
    return [
        f"metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; "
        "prefer separate namespaces to isolate access to mounted secrets"
    ]


def _annotations(account: Document) -> Document:
    annotations: Document = account["metadata"].get("annotations") or {}
    return annotations


STRATEGY = ServiceAccountStrategy
