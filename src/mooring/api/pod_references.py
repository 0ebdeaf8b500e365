"""The objects that a pod or a volume names: secrets, config maps, claims.

Input: documents. Output: names, without empty ones. A name may come more than once.
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.api.document import Document

_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_VOLUMES_WITH_SECRET_REF = ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
_CSI_SECRETS_OF_KUBELET = ("nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")
"""The secrets of a CSI volume that a kubelet reads. The controller's are not among them."""


def secret_names(spec: Document) -> Iterator[str]:
    """The secrets that the spec of a pod names."""
    for reference in spec.get("imagePullSecrets") or ():
        yield from _name(reference)
    yield from _names_in_environment(spec, "secretRef", "secretKeyRef")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _name(source.get("secret"))
        for field in ("azureFile", "secret"):
            yield from _name(volume.get(field), "secretName")
        for field in _VOLUMES_WITH_SECRET_REF:
            yield from _name((volume.get(field) or {}).get("secretRef"))
        yield from _name((volume.get("csi") or {}).get("nodePublishSecretRef"))


def config_map_names(spec: Document) -> Iterator[str]:
    """The config maps that the spec of a pod names."""
    yield from _names_in_environment(spec, "configMapRef", "configMapKeyRef")
    for volume in spec.get("volumes") or ():
        yield from _name(volume.get("configMap"))
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from _name(source.get("configMap"))


def volume_claim_names(pod: Document) -> Iterator[str]:
    """The PersistentVolumeClaims that a pod uses, those of its ephemeral volumes included."""
    for volume in pod["spec"].get("volumes") or ():
        yield from _name(volume.get("persistentVolumeClaim"), "claimName")
        if volume.get("ephemeral") is not None:
            yield f"{pod['metadata']['name']}-{volume['name']}"


def resource_claim_names(pod: Document) -> Iterator[str]:
    """The ResourceClaims that a pod uses. A claim of a template is known once the pod's status names it."""
    status = pod.get("status") or {}
    generated = {entry.get("name"): entry for entry in status.get("resourceClaimStatuses") or ()}
    for claim in pod["spec"].get("resourceClaims") or ():
        yield from _name(claim, "resourceClaimName")
        yield from _name(generated.get(claim.get("name")), "resourceClaimName")
    yield from _name(status.get("extendedResourceClaimStatus"), "resourceClaimName")


def volume_secrets(volume: Document) -> Iterator[tuple[str, str]]:
    """Namespace and name of the secrets of a bound PersistentVolume that a kubelet reads."""
    spec = volume["spec"]
    namespace = (spec.get("claimRef") or {}).get("namespace", "")
    azure_file = spec.get("azureFile") or {}
    for name in _name(azure_file, "secretName"):
        yield azure_file.get("secretNamespace") or namespace, name
    references = [(spec.get(field) or {}).get("secretRef") for field in _VOLUMES_WITH_SECRET_REF]
    references += [(spec.get("csi") or {}).get(field) for field in _CSI_SECRETS_OF_KUBELET]
    for reference in filter(None, references):
        for name in _name(reference):
            yield reference.get("namespace") or namespace, name


def _names_in_environment(spec: Document, whole: str, key: str) -> Iterator[str]:
    for field in _CONTAINER_LISTS:
        for container in spec.get(field) or ():
            for source in container.get("envFrom") or ():
                yield from _name(source.get(whole))
            for variable in container.get("env") or ():
                yield from _name((variable.get("valueFrom") or {}).get(key))


def _name(reference: Document | None, field: str = "name") -> Iterator[str]:
    name = (reference or {}).get(field)
    if name:
        yield name
