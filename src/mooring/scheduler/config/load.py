"""Load a configuration: decode the data of a file, fill in the defaults, validate.

Takes the data of a `KubeSchedulerConfiguration`, or None for no file. Returns a `SchedulerConfiguration` with every
default, or raises `ConfigurationError` with every problem.

1. The steps are decoding, defaults, validation. A step with problems ends loading: defaults and rules applied to
   fields that could not be decoded would report problems that do not exist.
2. The arguments of Kubernetes' own plugins become typed values. Those of other plugins stay as written: only the
   plugin can interpret them.
"""

from collections.abc import Mapping

import msgspec

from mooring.api.field_errors import quoted
from mooring.scheduler.config.codec import StrictDecoder, without_type_fields
from mooring.scheduler.config.profiles import with_defaults
from mooring.scheduler.config.types import (
    API_GROUP,
    API_VERSION,
    ARGUMENTS,
    KIND,
    ConfigProblem,
    ConfigurationError,
    KubeSchedulerProfile,
    PluginConfig,
    SchedulerConfiguration,
    child,
)
from mooring.scheduler.config.validation import validate

_KINDS = frozenset({KIND, *(f"{name}Args" for name in ARGUMENTS)})


def load_configuration(data: object | None) -> SchedulerConfiguration:
    if data is None:
        data = {"apiVersion": API_VERSION, "kind": KIND}
    configuration = _completed(_decoded(data), data)
    problems = validate(configuration)
    if problems:
        raise ConfigurationError(problems)
    return configuration


def _decoded(data: object) -> SchedulerConfiguration:
    if isinstance(data, Mapping):
        _check_kind(data)
        data = without_type_fields(data)
    decoder = StrictDecoder(custom={PluginConfig: _decode_plugin_config})
    configuration = decoder.struct(SchedulerConfiguration, data)
    if decoder.problems:
        raise ConfigurationError(decoder.problems)
    return configuration


def _completed(configuration: SchedulerConfiguration, data: object) -> SchedulerConfiguration:
    """Fill in the defaults that depend on more than one field. All others are in the types."""
    written = data if isinstance(data, Mapping) else {}
    profiles = configuration.profiles or (KubeSchedulerProfile(),)
    if len(profiles) > 1:
        # Only a single profile may omit its name. With several, validation reports the ones without a name.
        given = [_named(profile) for profile in written["profiles"]]
        profiles = tuple(
            profile if is_named else msgspec.structs.replace(profile, scheduler_name="")
            for profile, is_named in zip(profiles, given)
        )
    contention = configuration.enable_contention_profiling
    if not configuration.enable_profiling and written.get("enableContentionProfiling") is None:
        contention = False
    return msgspec.structs.replace(
        configuration,
        profiles=tuple(with_defaults(profile) for profile in profiles),
        enable_contention_profiling=contention,
    )


def _named(profile: object) -> bool:
    return isinstance(profile, Mapping) and profile.get("schedulerName") is not None


def _check_kind(data: Mapping[str, object]) -> None:
    version, kind = data.get("apiVersion"), data.get("kind")
    wanted = f"expected apiVersion {quoted(API_VERSION)} and kind {quoted(KIND)}"
    if not kind:
        raise ConfigurationError([ConfigProblem("kind", f"Object 'Kind' is missing: {wanted}")])
    if not version:
        raise ConfigurationError([ConfigProblem("apiVersion", f"Object 'apiVersion' is missing: {wanted}")])
    if version != API_VERSION or kind not in _KINDS:
        text = f"no kind {quoted(str(kind))} is registered for version {quoted(str(version))}: {wanted}"
        raise ConfigurationError([ConfigProblem("apiVersion" if version != API_VERSION else "kind", text)])
    if kind != KIND:
        text = f"couldn't decode as {KIND}, got {version}, Kind={kind}: {wanted}"
        raise ConfigurationError([ConfigProblem("kind", text)])


def _decode_plugin_config(decoder: StrictDecoder, data: object, path: str) -> PluginConfig:
    """An entry of `pluginConfig`. The plugin's name decides the type of the arguments."""
    entry = dict(data) if isinstance(data, Mapping) else data
    arguments = entry.pop("args", None) if isinstance(entry, dict) else None
    config = decoder.struct(PluginConfig, entry, path)
    where = child(path, "args")
    if config.name not in ARGUMENTS:
        if arguments is not None and not isinstance(arguments, Mapping):
            decoder.reject_type(where, "an object", arguments)
            return config
        return msgspec.structs.replace(config, args=arguments)
    mismatch = _kind_mismatch(config.name, arguments)
    if mismatch:
        decoder.problems.append(ConfigProblem(child(where, mismatch[0]), f"decoding .{path}: {mismatch[1]}"))
        return config
    nested = StrictDecoder(where, steps=(f"decoding .{path}", f"decoding args for plugin {config.name}"))
    decoded = nested.struct(ARGUMENTS[config.name], without_type_fields(arguments))
    decoder.problems += nested.problems
    return msgspec.structs.replace(config, args=decoded)


def _kind_mismatch(plugin: str, arguments: object) -> tuple[str, str] | None:
    """The field and the message, if the arguments state an `apiVersion` or `kind` of something else."""
    if not isinstance(arguments, Mapping):
        return None
    wanted = f"{plugin}Args"
    kind = arguments.get("kind") or wanted
    version = arguments.get("apiVersion") or API_VERSION
    if version != API_VERSION or kind not in _KINDS:
        text = f"no kind {quoted(str(kind))} is registered for version {quoted(str(version))}"
        return "apiVersion" if version != API_VERSION else "kind", f"decoding args for plugin {plugin}: {text}"
    if kind != wanted:
        return "kind", f"args for plugin {plugin} were not of type {wanted}.{API_GROUP}, got {kind}.{API_GROUP}"
    return None
