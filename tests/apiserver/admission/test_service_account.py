"""ServiceAccount: pods get a service account, a token volume and image pull secrets."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.document import Document
from mooring.api.kinds import POD, SERVICE_ACCOUNT, Kind
from mooring.apiserver.admission.service_account import TOKEN_PATH, ServiceAccountAdmission
from mooring.client.errors import ForbiddenError, ServerError
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from tests.apiserver.admission.builders import NS, Known, admitted, attempt, check, container, named, pod

DEFAULT = named("default", imagePullSecrets=[{"name": "registry"}])
DEFAULT["metadata"]["uid"] = "5f0c9a3e-8a54-4f6e-9a3b-0d5a8f1b2c3d"
WITHOUT_AUTOMOUNT = named("silent", automountServiceAccountToken=False)
KNOWN = Known({SERVICE_ACCOUNT: [DEFAULT, WITHOUT_AUTOMOUNT]})


def plugin(clock: VirtualClock | None = None) -> ServiceAccountAdmission:
    return ServiceAccountAdmission(clock or VirtualClock(), Entropy(1))


def made(one: Document, known: Known = KNOWN) -> Document:
    spec: Document = admitted(plugin(), attempt(POD, one), known)["spec"]
    return spec


def test_a_pod_without_an_account_gets_the_default_account_with_a_token_volume() -> None:
    spec = made(pod(initContainers=[container("i")]))
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    [volume] = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert [sorted(source) for source in volume["projected"]["sources"]] == [
        ["serviceAccountToken"],
        ["configMap"],
        ["downwardAPI"],
    ]
    mount = {"name": volume["name"], "readOnly": True, "mountPath": TOKEN_PATH}
    assert [one["volumeMounts"] for one in (*spec["containers"], *spec["initContainers"])] == [[mount], [mount]]


def test_the_token_volume_has_the_same_name_in_all_pods_of_an_account() -> None:
    first, second = made(pod()), made(pod())
    assert first["volumes"] == second["volumes"]
    other = named("default")
    other["metadata"]["uid"] = "another"
    assert made(pod(), Known({SERVICE_ACCOUNT: [other]}))["volumes"] != first["volumes"]


def test_an_existing_token_volume_is_mounted() -> None:
    spec = made(pod(volumes=[{"name": "kube-api-access-mine"}]))
    assert spec["volumes"] == [{"name": "kube-api-access-mine"}]
    assert spec["containers"][0]["volumeMounts"][0]["name"] == "kube-api-access-mine"


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"automountServiceAccountToken": False}, id="disabled in the pod"),
        pytest.param({"serviceAccountName": "silent"}, id="disabled in the account"),
        pytest.param(
            {"containers": [container(volumeMounts=[{"mountPath": TOKEN_PATH}])]}, id="the mount path is used"
        ),
    ],
)
def test_no_token_is_mounted(given: dict[str, Any]) -> None:
    assert "volumes" not in made(pod(**given))


def test_image_pull_secrets_of_the_pod_are_kept() -> None:
    assert made(pod(imagePullSecrets=[{"name": "mine"}]))["imagePullSecrets"] == [{"name": "mine"}]


def mirror(**spec: Any) -> Document:
    one = pod(**spec)
    one["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    return one


def test_a_mirror_pod_is_not_changed() -> None:
    assert made(mirror()) == pod()["spec"]


@pytest.mark.parametrize(
    ("one", "why"),
    [
        pytest.param(
            pod(serviceAccountName="none"),
            f'error looking up service account {NS}/none: serviceaccount "none" not found',
            id="no such account",
        ),
        pytest.param(
            mirror(serviceAccountName="a"),
            "a mirror pod may not reference service accounts",
            id="a mirror pod with an account",
        ),
        pytest.param(
            mirror(volumes=[{"name": "v", "secret": {"secretName": "s"}}]),
            "a mirror pod may not reference secrets",
            id="a mirror pod with a secret",
        ),
        pytest.param(
            mirror(containers=[container(envFrom=[{"secretRef": {"name": "s"}}])]),
            "a mirror pod may not reference secrets",
            id="a mirror pod with a secret in its environment",
        ),
        pytest.param(
            mirror(volumes=[{"name": "v", "csi": {"nodePublishSecretRef": {"name": "s"}}}]),
            "a mirror pod may not reference secrets",
            id="a mirror pod with a secret of a CSI volume",
        ),
        pytest.param(
            mirror(volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {}}]}}]),
            "a mirror pod may not use ServiceAccountToken volume projections",
            id="a mirror pod with a token",
        ),
    ],
)
def test_rejected_pods(one: Document, why: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        made(one)
    assert caught.value.message == f'pods "p" is forbidden: {why}'


# --- the account does not exist yet -----------------------------------------------------------------------------------


class LateDefaultAccount(Known):
    """The default account exists after a number of lookups."""

    def __init__(self, tries: int) -> None:
        super().__init__()
        self.tries_left = tries

    async def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        self.tries_left -= 1
        return DEFAULT if self.tries_left < 0 and name == "default" else None


@pytest.mark.parametrize(("missing", "is_found"), [(0, True), (1, True), (9, True), (10, False)])
def test_the_default_account_is_looked_up_ten_times(missing: int, is_found: bool) -> None:
    clock = VirtualClock()
    admit = plugin(clock).admit(attempt(POD, pod()), LateDefaultAccount(missing))
    if is_found:
        run(admit, clock)
    else:
        with pytest.raises(ForbiddenError, match='account team/default: serviceaccount "default" not found'):
            run(admit, clock)
    waits = min(missing, 9)
    assert 0.1 * waits <= clock.now_s() <= 0.2 * waits


def test_another_account_is_looked_up_once() -> None:
    clock = VirtualClock()
    with pytest.raises(ForbiddenError):
        run(plugin(clock).admit(attempt(POD, pod(serviceAccountName="other")), KNOWN), clock)
    assert clock.now_s() == 0.0


# --- mountable secrets ------------------------------------------------------------------------------------------------

STRICT = {
    "metadata": {
        "name": "strict",
        "uid": "uid-strict",
        "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"},
    },
    "secrets": [{"name": "mine"}],
    "imagePullSecrets": [{"name": "pull"}],
}
OF_STRICT = Known({SERVICE_ACCOUNT: [STRICT]})


def env(secret: str) -> list[Document]:
    return [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}]


def secret_volume(secret: str) -> list[Document]:
    return [{"name": "v", "secret": {"secretName": secret}}]


def test_secrets_of_the_account_may_be_mounted() -> None:
    spec: dict[str, Any] = {"volumes": secret_volume("mine"), "containers": [container(env=env("mine"))]}
    assert made(pod(serviceAccountName="strict", **spec), OF_STRICT)["imagePullSecrets"] == [{"name": "pull"}]


@pytest.mark.parametrize(
    ("spec", "what", "kind"),
    [
        pytest.param({"volumes": secret_volume("x")}, 'volume with secret.secretName="x"', "secret", id="a volume"),
        pytest.param(
            {"containers": [container(env=env("x"))]},
            'container c with envVar KEY referencing secret.secretName="x"',
            "secret",
            id="an environment variable",
        ),
        pytest.param(
            {"initContainers": [container("i", envFrom=[{"secretRef": {"name": "x"}}])]},
            'init container i with envFrom referencing secret.secretName="x"',
            "secret",
            id="envFrom of an init container",
        ),
        pytest.param(
            {"imagePullSecrets": [{"name": "pull"}, {"name": "x"}]},
            'imagePullSecrets[1].name="x"',
            "imagePullSecret",
            id="a pull secret",
        ),
    ],
)
def test_other_secrets_may_not_be_mounted(spec: dict[str, Any], what: str, kind: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        made(pod(serviceAccountName="strict", **spec), OF_STRICT)
    why = f"{what} is not allowed because service account strict does not reference that {kind}"
    assert caught.value.message == f'pods "p" is forbidden: {why}'


def test_secrets_of_ephemeral_containers_are_checked() -> None:
    old = pod(serviceAccountName="strict")
    new = pod(serviceAccountName="strict", ephemeralContainers=[container("e", env=env("x"))])
    with pytest.raises(ServerError, match=r"^ephemeral container e with envVar KEY referencing .* that secret$"):
        check(plugin(), attempt(POD, new, old, subresource="ephemeralcontainers"), OF_STRICT)
