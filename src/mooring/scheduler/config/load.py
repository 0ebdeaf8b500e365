"""Load a configuration from the data of a file, and encode it as such data.

`load_configuration` takes the data of a `KubeSchedulerConfiguration`, or None for no file. It returns a
`SchedulerConfiguration` with every default, or raises `ConfigurationError` with every problem.

1. The steps are decoding, defaults, validation. A step with problems ends loading: defaults and rules applied to
   fields that could not be decoded would report problems that do not exist.
2. The arguments of Kubernetes' own plugins become typed values. Those of other plugins stay as written: only the
   plugin can interpret them.

`StrictDecoder` takes dictionaries and lists, as a YAML or JSON parser returns them, and a type. It returns a value of
that type; problems are added to the decoder's list, and decoding continues. msgspec's own decoder is not used because
it stops at the first problem and its messages differ from Kubernetes'.

3. An unknown field is a problem, never ignored: a misspelt setting that silently has no effect causes outages.
4. No value is converted: "5" is not 5, and true is not 1.
5. `null` means that the field is absent. In a list it stands for an element with no field set.
6. A value that cannot be decoded counts as zero, so that each mistake is reported once and the rest is still checked.
   A value with problems must not be used.

`encode_configuration` takes a `SchedulerConfiguration` with every default, for `/configz` and `--write-config-to`. It
returns the data of a `KubeSchedulerConfiguration` v1, from which the same configuration is loaded.

7. The fields are those that kube-scheduler writes: it omits empty values, but not zeros that have a meaning, and it
   writes every field of `leaderElection` and `clientConnection`.
8. `percentageOfNodesToScore` is omitted if the configuration does not set it. kube-scheduler writes its default, 0,
   which is not the default here: reading it back would change the scheduler's decisions.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, TypeVar, Union, get_args, get_origin

import msgspec

from mooring.api.durations import format_duration, parse_duration
from mooring.api.field_errors import quoted
from mooring.scheduler.config.profiles import with_defaults
from mooring.scheduler.config.types import (
    API_GROUP,
    API_VERSION,
    ARGUMENTS,
    INT32,
    KIND,
    ClientConnectionConfiguration,
    ConfigObject,
    ConfigProblem,
    ConfigurationError,
    ExtenderConfiguration,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    IntegerRange,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginConfig,
    PluginEntry,
    SchedulerConfiguration,
    ValueMeaning,
    child,
)
from mooring.scheduler.config.validation import validate

HASH_LENGTH = 16

S = TypeVar("S", bound=msgspec.Struct)

CustomDecoder = Callable[["StrictDecoder", object, str], object]

FOUND_SHOWN_MAX = 40
"""Characters of a wrong value that a message repeats."""


TYPE_FIELDS = ("apiVersion", "kind")


def without_type_fields(data: object) -> object:
    """The data of an object without its apiVersion and kind."""
    if not isinstance(data, Mapping):
        return data
    return {key: value for key, value in data.items() if key not in TYPE_FIELDS}


class StrictDecoder:
    """Decodes one value and collects the problems.

    `root` is the path of the data in the file. `steps` are the decoding steps that Kubernetes' message names: it
    decodes the arguments of each plugin separately, with paths relative to the arguments.
    """

    def __init__(
        self,
        root: str = "",
        steps: Sequence[str] = (),
        custom: Mapping[type[msgspec.Struct], CustomDecoder] | None = None,
    ) -> None:
        self.problems: list[ConfigProblem] = []
        self._root = root
        self._steps = steps
        self._custom = custom or {}

    def struct(self, kind: type[S], data: object, path: str = "") -> S:
        fields = _struct_fields(kind)
        found = self._object(data, path)
        values: dict[str, object] = {}
        for key, value in found.items():
            if key not in fields:
                self._reject_unknown(child(path, key), key, fields)
            elif value is not None:
                values[fields[key].name] = self._field(fields[key], value, child(path, key))
        for field in fields.values():
            if field.name not in values and field.required:
                values[field.name] = self.value(field.type, None, child(path, field.encode_name))
        return kind(**values)

    def value(self, target: object, data: object, path: str) -> object:
        """Data as the type `target`; None gives the type's zero."""
        bare, marks = _unannotated(target)
        origin, arguments = get_origin(bare), get_args(bare)
        if ValueMeaning.DURATION in marks:
            return self._duration(data, path)
        if bare is int:
            return self._integer(data, path, marks)
        if origin is tuple:
            return self._list(arguments[0], data, path)
        if origin is Mapping:
            return {k: self.value(arguments[1], v, f"{path}[{k}]") for k, v in self._object(data, path).items()}
        if origin in (Union, UnionType):
            chosen = [argument for argument in arguments if argument is not NoneType]
            assert len(chosen) == 1, f"{path}: no way to choose between {chosen}"
            return None if data is None else self.value(chosen[0], data, path)
        if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
            return self._custom[bare](self, data, path) if bare in self._custom else self.struct(bare, data, path)
        assert isinstance(bare, type), f"{path}: {bare} is not a type that configurations are made of"
        return self._scalar(bare, data, path)

    def reject(self, path: str, text: str) -> None:
        """Add a problem with the path of its field."""
        before = "".join(f"{step}: " for step in self._steps)
        where = path or self._root or "the configuration"
        self.problems.append(ConfigProblem(self._whole(path), f"{before}{where}: {text}"))

    def reject_type(self, path: str, expected: str, found: object) -> None:
        self.reject(path, f"expected {expected}, found {_described(found)}")

    def _field(self, field: msgspec.structs.FieldInfo, data: object, path: str) -> object:
        value = self.value(field.type, data, path)
        if not value and ValueMeaning.ZERO_IS_DEFAULT in _unannotated(field.type)[1]:
            return field.default
        return value

    def _object(self, data: object, path: str) -> Mapping[str, object]:
        if data is None:
            return {}
        if not isinstance(data, Mapping):
            self.reject_type(path, "an object", data)
            return {}
        return {str(key): value for key, value in data.items()}

    def _list(self, item: object, data: object, path: str) -> tuple[object, ...]:
        if data is None:
            return ()
        if not isinstance(data, Sequence) or isinstance(data, str | bytes):
            self.reject_type(path, "a list", data)
            return ()
        return tuple(self.value(item, element, f"{path}[{index}]") for index, element in enumerate(data))

    def _integer(self, data: object, path: str, marks: tuple[object, ...]) -> int:
        # A plain int comes from the views of API objects, whose integers inside of configurations have 32 bits.
        bounds = next((mark for mark in marks if isinstance(mark, IntegerRange)), INT32)
        if data is None:
            return 0
        if not isinstance(data, int) or isinstance(data, bool):
            self.reject_type(path, "an integer", data)
            return 0
        if not bounds.lowest <= data <= bounds.highest:
            self.reject_type(path, f"an integer between {bounds.lowest} and {bounds.highest}", data)
            return 0
        return data

    def _duration(self, data: object, path: str) -> float:
        if data is None:
            return 0.0
        if not isinstance(data, str):
            self.reject_type(path, 'a duration such as "1m30s"', data)
            return 0.0
        try:
            return parse_duration(data)
        except ValueError as error:
            self.reject(path, f'expected a duration such as "1m30s": {error}')
            return 0.0

    def _scalar(self, target: type, data: object, path: str) -> object:
        if data is None:
            return target()
        if target is str and isinstance(data, str):
            return data
        if target is bool and isinstance(data, bool):
            return data
        if target is float and isinstance(data, int | float) and not isinstance(data, bool):
            return float(data)
        if target is bytes and isinstance(data, str):
            try:
                return base64.b64decode(data, validate=True)
            except binascii.Error:
                pass
        self.reject_type(path, _NAMES[target], data)
        return target()

    def _reject_unknown(self, path: str, key: str, fields: Mapping[str, object]) -> None:
        before = "".join(f"strict decoding error: {step}: " for step in self._steps)
        text = f"{before}strict decoding error: unknown field {quoted(path)}"
        by_lower = {name.lower(): name for name in fields}
        close = difflib.get_close_matches(key.lower(), by_lower, n=1)
        if close:
            hint = f"did you mean {quoted(by_lower[close[0]])}?"
        else:
            hint = "expected one of " + ", ".join(quoted(name) for name in sorted(fields))
        self.problems.append(ConfigProblem(self._whole(path), f"{text}; {hint}"))

    def _whole(self, path: str) -> str:
        return f"{self._root}.{path}" if self._root and path else self._root or path


_NAMES: dict[type, str] = {str: "text", bool: "true or false", float: "a number", bytes: "base64 text"}


@cache
def _struct_fields(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


def _unannotated(target: object) -> tuple[object, tuple[object, ...]]:
    if get_origin(target) is Annotated:
        bare, *marks = get_args(target)
        return bare, tuple(marks)
    return target, ()


def _described(found: object) -> str:
    match found:
        case None:
            return "null"
        case bool():
            return "true" if found else "false"
        case int() | float():
            return f"the number {found}"
        case str():
            shown = found if len(found) <= FOUND_SHOWN_MAX else found[:FOUND_SHOWN_MAX] + "…"
            return f"the text {quoted(shown)}"
        case Mapping():
            return "an object"
        case Sequence():
            return "a list"
        case _:
            return f"a {type(found).__name__}"


_SHOWN_WHOLE = (LeaderElectionConfiguration, ClientConnectionConfiguration, PluginEntry)
_WITHOUT_ZEROES = (ExtenderConfiguration, ExtenderManagedResource, ExtenderTLSConfig)
_WITHOUT_FALSE = ("delayCacheUntilActive",)


def encode_configuration(configuration: SchedulerConfiguration) -> dict[str, object]:
    """The data of a file."""
    return {"apiVersion": API_VERSION, "kind": KIND, **_encoded(configuration)}


def configuration_hash(configuration: SchedulerConfiguration) -> str:
    """The same for equal configurations, in every process."""
    plain = msgspec.json.encode(encode_configuration(configuration), order="deterministic")
    return hashlib.sha256(plain).hexdigest()[:HASH_LENGTH]


def _encoded(settings: ConfigObject) -> dict[str, object]:
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
        case ConfigObject() as arguments:
            typed = {"kind": f"{config.name}Args", "apiVersion": API_VERSION, **_encoded(arguments)}
            return {"name": config.name, "args": typed}
        case raw:
            return {"name": config.name, "args": dict(raw)}


def _is_shown(settings: ConfigObject, name: str, value: object) -> bool:
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
        case ConfigObject():
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
            encoded = {key: _without_empty(item) for key, item in value.items()}
            return {key: item for key, item in encoded.items() if item not in (None, "", [], {})}
        case list() | tuple():
            return [_without_empty(item) for item in value]
        case _:
            return value


def _is_duration(target: object) -> bool:
    if get_origin(target) is not Annotated:
        return False
    bare, *marks = get_args(target)
    return ValueMeaning.DURATION in marks or _is_duration(bare)


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
        given = [_has_name(profile) for profile in written["profiles"]]
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


def _has_name(profile: object) -> bool:
    return isinstance(profile, Mapping) and profile.get("schedulerName") is not None


def _check_kind(data: Mapping[str, object]) -> None:
    version, kind = data.get("apiVersion"), data.get("kind")
    expected = f"expected apiVersion {quoted(API_VERSION)} and kind {quoted(KIND)}"
    if not kind:
        raise ConfigurationError([ConfigProblem("kind", f"Object 'Kind' is missing: {expected}")])
    if not version:
        raise ConfigurationError([ConfigProblem("apiVersion", f"Object 'apiVersion' is missing: {expected}")])
    if version != API_VERSION or kind not in _KINDS:
        text = f"no kind {quoted(str(kind))} is registered for version {quoted(str(version))}: {expected}"
        raise ConfigurationError([ConfigProblem("apiVersion" if version != API_VERSION else "kind", text)])
    if kind != KIND:
        text = f"couldn't decode as {KIND}, got {version}, Kind={kind}: {expected}"
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
    expected_kind = f"{plugin}Args"
    kind = arguments.get("kind") or expected_kind
    version = arguments.get("apiVersion") or API_VERSION
    if version != API_VERSION or kind not in _KINDS:
        text = f"no kind {quoted(str(kind))} is registered for version {quoted(str(version))}"
        return "apiVersion" if version != API_VERSION else "kind", f"decoding args for plugin {plugin}: {text}"
    if kind != expected_kind:
        return "kind", f"args for plugin {plugin} were not of type {expected_kind}.{API_GROUP}, got {kind}.{API_GROUP}"
    return None
