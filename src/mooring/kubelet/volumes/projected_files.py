"""Files of configMap, secret, downwardAPI and projected volumes.

Input: a volume, the objects that it refers to, tokens. Output: files by path; or a `VolumeError`.

 1. Without `items` every key is a file; with `items` only those, under their paths. A missing key is an error unless
    the source is optional.
 2. A projected volume has the files of all sources; later ones override earlier ones. All errors are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mooring.kubelet.environment import field_value, resource_value
from mooring.kubelet.references import ContainerConfigError, NodeFacts, ReferencedObjects
from mooring.kubelet.views import (
    DownwardVolume,
    FullPod,
    FullVolume,
    KeyPath,
    Projection,
    TokenProjection,
)

MODE = 0o644
"""The default mode; the API server sets it on every volume."""


class VolumeError(Exception):
    """A volume cannot be created; the text is the message of the event FailedMount. A retry may help."""


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int


Files = dict[str, File]


def files_of(
    volume: FullVolume, pod: FullPod, found: ReferencedObjects, tokens: Mapping[TokenProjection, str], node: NodeFacts
) -> Files:
    """The files of a volume. Raises `VolumeError`."""
    try:
        return _files(volume, pod, found, tokens, node)
    except ContainerConfigError as error:
        raise volume_error(volume.name, str(error)) from None


def volume_error(volume: str, why: str) -> VolumeError:
    """With the text of the kubelet."""
    return VolumeError(f'MountVolume.SetUp failed for volume "{volume}" : {why}')


def config_map_names(volumes: Iterable[FullVolume]) -> list[str]:
    """The ConfigMaps that volumes refer to."""
    direct = [volume.config_map.name for volume in volumes if volume.config_map]
    projected = [source.config_map.name for source in _sources(volumes) if source.config_map]
    return list(dict.fromkeys([*direct, *projected]))


def secret_names(volumes: Iterable[FullVolume]) -> list[str]:
    """The Secrets that volumes refer to."""
    direct = [volume.secret.secret_name for volume in volumes if volume.secret]
    projected = [source.secret.name for source in _sources(volumes) if source.secret]
    return list(dict.fromkeys([*direct, *projected]))


def token_projections(volumes: Iterable[FullVolume]) -> list[TokenProjection]:
    """The service account tokens of volumes."""
    token_sources = [source.service_account_token for source in _sources(volumes)]
    return list(dict.fromkeys(token for token in token_sources if token is not None))


def _sources(volumes: Iterable[FullVolume]) -> list[Projection]:
    return [source for volume in volumes if volume.projected for source in volume.projected.sources]


def _files(
    volume: FullVolume, pod: FullPod, found: ReferencedObjects, tokens: Mapping[TokenProjection, str], node: NodeFacts
) -> Files:
    if (config_map := volume.config_map) is not None:
        return _of_config_map(config_map.name, config_map.items, config_map.default_mode, config_map.optional, found)
    if (secret := volume.secret) is not None:
        return _of_secret(secret.secret_name, secret.items, secret.default_mode, secret.optional, found)
    if (downward := volume.downward_api) is not None:
        return _of_fields(downward, downward.default_mode, pod, node)
    assert volume.projected is not None, f"{volume.name} is not a volume of files"
    files: Files = {}
    errors = []
    for source in volume.projected.sources:
        try:
            files |= _of_projection(source, volume.projected.default_mode, pod, found, tokens, node)
        except ContainerConfigError as error:
            errors.append(str(error))
    if errors:
        raise ContainerConfigError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return files


def _of_projection(
    source: Projection,
    mode: int | None,
    pod: FullPod,
    found: ReferencedObjects,
    tokens: Mapping[TokenProjection, str],
    node: NodeFacts,
) -> Files:
    if source.config_map is not None:
        return _of_config_map(source.config_map.name, source.config_map.items, mode, source.config_map.optional, found)
    if source.secret is not None:
        return _of_secret(source.secret.name, source.secret.items, mode, source.secret.optional, found)
    if source.downward_api is not None:
        return _of_fields(source.downward_api, mode, pod, node)
    if (token := source.service_account_token) is not None:
        return {token.path: File(tokens[token].encode(), _mode(None, mode))}
    raise ContainerConfigError(
        "this kubelet projects configMap, secret, downwardAPI and serviceAccountToken sources only"
    )


def _of_config_map(
    name: str, items: Sequence[KeyPath], mode: int | None, is_optional: bool, found: ReferencedObjects
) -> Files:
    config_map = found.config_map(name, is_optional=is_optional)
    data: dict[str, bytes] = {}
    if config_map is not None:
        data = {key: text.encode() for key, text in config_map.data.items()} | dict(config_map.binary_data)
    return _of_keys(data, items, mode, is_optional, "configmap references non-existent config key: {}".format)


def _of_secret(
    name: str, items: Sequence[KeyPath], mode: int | None, is_optional: bool, found: ReferencedObjects
) -> Files:
    secret = found.secret(name, is_optional=is_optional)
    data = dict(secret.data) if secret is not None else {}
    return _of_keys(data, items, mode, is_optional, "references non-existent secret key: {}".format)


def _of_keys(
    data: Mapping[str, bytes],
    items: Sequence[KeyPath],
    mode: int | None,
    is_optional: bool,
    missing_key_message: Callable[[str], str],
) -> Files:
    if not items:
        return {key: File(value, _mode(None, mode)) for key, value in data.items()}
    files: Files = {}
    for item in items:
        if item.key in data:
            files[item.path] = File(data[item.key], _mode(item.mode, mode))
        elif not is_optional:
            raise ContainerConfigError(missing_key_message(item.key))
    return files


def _of_fields(downward: DownwardVolume, mode: int | None, pod: FullPod, node: NodeFacts) -> Files:
    files: Files = {}
    for item in downward.items:
        text = ""
        if item.field_ref is not None:
            text = field_value(item.field_ref, pod, node)
        elif item.resource_field_ref is not None:
            text = resource_value(item.resource_field_ref, pod, None, node)
        files[item.path] = File(text.encode(), _mode(item.mode, mode))
    return files


def _mode(own: int | None, default: int | None) -> int:
    if own is not None:
        return own
    return default if default is not None else MODE
