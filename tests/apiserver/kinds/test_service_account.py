"""Tests of kinds.service_account."""

from __future__ import annotations

from mooring.api.kinds import SERVICE_ACCOUNT
from mooring.apiserver.kinds.service_account import ENFORCE_MOUNTABLE_SECRETS
from tests.apiserver.core_documents import call, changed, created, document, strategy

ANNOTATED = {"annotations": {ENFORCE_MOUNTABLE_SECRETS: "true"}}
SECRETS = [{"name": "a", "namespace": "b", "uid": "c"}, {}]


def test_references_to_secrets_keep_only_the_name() -> None:
    account = document(SERVICE_ACCOUNT, secrets=SECRETS)
    assert created(SERVICE_ACCOUNT, account) == []
    assert account["secrets"] == [{"name": "a"}, {}]
    errors, account = changed(SERVICE_ACCOUNT, document(SERVICE_ACCOUNT), secrets=SECRETS)
    assert (errors, account["secrets"]) == ([], [{"name": "a"}, {}])


def test_a_new_deprecated_annotation_has_a_warning() -> None:
    kind_strategy, plain = strategy(SERVICE_ACCOUNT), document(SERVICE_ACCOUNT)
    account = document(SERVICE_ACCOUNT, ANNOTATED)
    warnings = kind_strategy.warnings_on_create(account, call(SERVICE_ACCOUNT))
    assert warnings == [
        "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; "
        "prefer separate namespaces to isolate access to mounted secrets"
    ]
    assert kind_strategy.warnings_on_update(account, plain, call(SERVICE_ACCOUNT)) == warnings
    assert kind_strategy.warnings_on_update(account, account, call(SERVICE_ACCOUNT)) == []
    assert kind_strategy.warnings_on_create(plain, call(SERVICE_ACCOUNT)) == []
