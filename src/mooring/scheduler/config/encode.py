"""Encode a configuration as the data of a file, for `/configz` and `--write-config-to`.

Takes a `SchedulerConfiguration` with every default. Returns the data of a `KubeSchedulerConfiguration` v1, which
`load` reads back to the same configuration.

1. The fields are those that kube-scheduler writes: it omits empty values, but not zeros that have a meaning, and it
   writes every field of `leaderElection` and `clientConnection`.
2. `percentageOfNodesToScore` is omitted if the configuration does not set it. kube-scheduler writes its default, 0,
   which is not the default here: reading it back would change the scheduler's decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, get_args, get_origin

import msgspec

from mooring.api.durations import format_duration
from mooring.scheduler.config.types import (
    API_VERSION,
    KIND,
    ClientConnectionConfiguration,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    LeaderElectionConfiguration,
    Meaning,
    Plugin,
    PluginConfig,
    SchedulerConfiguration,
    Settings,
)

_SHOWN_WHOLE = (LeaderElectionConfiguration, ClientConnectionConfiguration, Plugin)
_WITHOUT_ZEROES = (Extender, ExtenderManagedResource, ExtenderTLSConfig)
_WITHOUT_FALSE = ("delayCacheUntilActive",)


def encode_configuration(configuration: SchedulerConfiguration) -> dict[str, object]:
    """The data of a file."""
    return {"apiVersion": API_VERSION, "kind": KIND, **_encoded(configuration)}


def _encoded(settings: Settings) -> dict[str, object]:
    if isinstance(settings, PluginConfig):
        return _plugin_config(settings)
    found: dict[str, object] = {}
    for field in msgspec.structs.fields(settings):
        value = getattr(settings, field.name)
        if _is_shown(settings, field.encode_name, value):
            found[field.encode_name] = _value(value, is_duration=_is_duration(field.type))
    return found


def _plugin_config(config: PluginConfig) -> dict[str, object]:
    match config.args:
        case None:
            return {"name": config.name}
        case Settings() as arguments:
            typed = {"kind": f"{config.name}Args", "apiVersion": API_VERSION, **_encoded(arguments)}
            return {"name": config.name, "args": typed}
        case raw:
            return {"name": config.name, "args": dict(raw)}


def _is_shown(settings: Settings, name: str, value: object) -> bool:
    if value is None:
        return False
    if isinstance(settings, _SHOWN_WHOLE):
        return True
    if isinstance(value, bool | int | float):
        return bool(value) or not (isinstance(settings, _WITHOUT_ZEROES) or name in _WITHOUT_FALSE)
    return not isinstance(value, str | bytes | tuple) or len(value) > 0


def _value(value: object, *, is_duration: bool = False) -> object:
    if is_duration:
        assert isinstance(value, float | int), f"{value!r} is no number of seconds"
        return format_duration(value)
    match value:
        case Settings():
            return _encoded(value)
        case tuple() | list():
            return [_value(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case msgspec.Struct() | bytes():
            return _without_empty(msgspec.to_builtins(value))
        case _:
            return value


def _without_empty(value: object) -> object:
    """A part of an API object, without empty values."""
    match value:
        case Mapping():
            kept = {key: _without_empty(item) for key, item in value.items()}
            return {key: item for key, item in kept.items() if item not in (None, "", [], {})}
        case list() | tuple():
            return [_without_empty(item) for item in value]
        case _:
            return value


def _is_duration(wanted: object) -> bool:
    if get_origin(wanted) is not Annotated:
        return False
    bare, *marks = get_args(wanted)
    return Meaning.DURATION in marks or _is_duration(bare)
