"""Load users' plugins: from a file, from an importable class, or from an installed package.

`plugins_from` takes the value of `--plugin` (`rules.py`, `package.module:Class`). `installed_plugins` reads entry
points:

    [project.entry-points."mooring.plugins"]
    quiet-hours = "acme.placement:QuietHours"

Both return plugin classes, which the registry validates, or raise `PluginFileError` before a pod is scheduled.

1. A file runs under a module name of its own: two files with the same name, or a file named like a library, do not
   conflict. No bytecode is written, and a changed file is read again.
2. Classes that a file only imports are not its plugins. A class without `name` from which others of the file inherit
   is a common base, and no plugin either. All others are plugins.
3. Loading enables no plugin: the configuration does. `enabled_if_unmentioned` enables plugins for users without one.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import traceback
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import CodeType, ModuleType

import msgspec

from mooring.api.well_known import DEFAULT_SCHEDULER_NAME
from mooring.scheduler.config.types import (
    ExtensionPoint,
    KubeSchedulerProfile,
    PluginEntry,
    Plugins,
    PluginSet,
    SchedulerConfiguration,
)
from mooring.scheduler.framework.plugin import Plugin

ENTRY_POINT_GROUP = "mooring.plugins"
_FILE_MODULE = "_mooring_plugins_"
"""How the modules of plugin files are called."""
_CLASS_NAME = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)")


def plugins_from(source: str) -> list[type[Plugin]]:
    """The plugins of a file, or the one class that `package.module:Class` names."""
    match = _CLASS_NAME.fullmatch(source)
    if match is None or Path(source).exists():
        return load_plugins(Path(source))
    return [_imported(source, match["module"], match["name"])]


def source_of(plugin: type[Plugin]) -> tuple[str, str]:
    """What `plugins_from` takes to load a plugin again, and the file of the plugin; empty if it has none."""
    module = sys.modules.get(plugin.__module__)
    file = getattr(module, "__file__", None) or ""
    is_file = plugin.__module__.startswith(_FILE_MODULE)
    return str(Path(file).absolute()) if is_file else f"{plugin.__module__}:{plugin.__qualname__}", file


def installed_plugins() -> list[type[Plugin]]:
    """The plugins of all installed packages, sorted by the names of their entry points."""
    found = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value))
    return [_load_entry_point(point) for point in found]


def _imported(source: str, module_name: str, name: str) -> type[Plugin]:
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise PluginFileError(f"{source}: {module_name} cannot be imported: {_describe(error)}") from error
    if not hasattr(module, name):
        raise PluginFileError(f"{source}: {module_name} has no {name}")
    return _plugin_class(source, getattr(module, name))


def _load_entry_point(point: EntryPoint) -> type[Plugin]:
    package = point.dist.name if point.dist is not None else "some package"
    source = f"entry point {point.name} of {package} ({point.value})"
    try:
        offered = point.load()
    except Exception as error:
        raise PluginFileError(f"{source}: cannot be imported: {_describe(error)}; repair or uninstall it") from error
    return _plugin_class(source, offered)


def _plugin_class(source: str, found: object) -> type[Plugin]:
    if isinstance(found, type) and issubclass(found, Plugin):
        return found
    raise PluginFileError(f"{source}: is {found!r}, expected a class that inherits from FilterPlugin, ScorePlugin, …")


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class PluginFileError(ValueError):
    """A source without plugins. The message says where, what was found and what was expected."""


def load_plugins(path: Path) -> list[type[Plugin]]:
    """The plugin classes that a file defines, in its order. Raises `PluginFileError`."""
    module = _run(path, _compiled(path))
    defined = [
        value
        for value in dict.fromkeys(value for value in vars(module).values() if isinstance(value, type))
        if issubclass(value, Plugin) and value.__module__ == module.__name__
    ]
    plugins = [plugin for plugin in defined if not _is_common_base(plugin, defined)]
    if not plugins:
        raise PluginFileError(
            f"{path}: found no plugin class; define one that inherits from FilterPlugin or ScorePlugin "
            "(mooring.scheduler.framework.node_plugins), or from Filter, Score, … (mooring.scheduler.framework.plugin)"
        )
    return plugins


def enabled_if_unmentioned(configuration: SchedulerConfiguration, names: Iterable[str]) -> SchedulerConfiguration:
    """The configuration with these plugins enabled at all their points, except those that it enables or disables.

    They are enabled in the default profile (the first, if none has the default name), with weight 1. A plugin for which
    the configuration only has arguments is enabled as well: arguments alone do not enable a plugin.
    """
    mentioned = {entry.name for profile in configuration.profiles for entry in _entries(profile.plugins)}
    added = tuple(PluginEntry(name=name, weight=1) for name in dict.fromkeys(names) if name not in mentioned)
    profiles = list(configuration.profiles)
    named = [profile.scheduler_name for profile in profiles]
    at = named.index(DEFAULT_SCHEDULER_NAME) if DEFAULT_SCHEDULER_NAME in named else 0
    profiles[at] = _with_enabled(profiles[at], added)
    return msgspec.structs.replace(configuration, profiles=tuple(profiles))


# --- running a file ---------------------------------------------------------------------------------------------


def _compiled(path: Path) -> CodeType:
    try:
        return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except FileNotFoundError:
        raise PluginFileError(f"{path}: there is no such file; expected a Python file that defines plugins") from None
    except IsADirectoryError:
        raise PluginFileError(f"{path}: is a folder; expected one Python file that defines plugins") from None
    except OSError as error:
        raise PluginFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    except SyntaxError as error:
        where = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise PluginFileError(f"{where}: is not Python: {error.msg}") from error
    except ValueError as error:  # null bytes: Python 3.11 raises this for a binary file
        raise PluginFileError(f"{path}: is not Python: {error}") from error


def _run(path: Path, code: CodeType) -> ModuleType:
    module = ModuleType(_module_name(path))
    module.__file__ = str(path)
    # Dataclasses and msgspec look up the module of a class by name, to find the types of the file.
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        exec(code, vars(module))
    except (Exception, SystemExit) as error:
        if before is not None:
            sys.modules[module.__name__] = before
        else:
            del sys.modules[module.__name__]
        raise PluginFileError(_load_error(path, error)) from error
    return module


def _module_name(path: Path) -> str:
    whole = str(path.resolve())
    return f"{_FILE_MODULE}{path.stem}_{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def _load_error(path: Path, error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f"{path}:{lines[-1]}" if lines else str(path)
    return f"{where}: fails when it is loaded: {_describe(error)}"


def _is_common_base(candidate: type[Plugin], defined: list[type[Plugin]]) -> bool:
    is_named = isinstance(getattr(candidate, "name", None), str)
    return not is_named and any(other is not candidate and issubclass(other, candidate) for other in defined)


# --- enabling ---------------------------------------------------------------------------------------------------


def _entries(plugins: Plugins) -> Iterable[PluginEntry]:
    for listed in (plugins.multi_point, *(plugins.at(point) for point in ExtensionPoint)):
        yield from listed.enabled
        yield from listed.disabled


def _with_enabled(profile: KubeSchedulerProfile, added: tuple[PluginEntry, ...]) -> KubeSchedulerProfile:
    everywhere = profile.plugins.multi_point
    extended = PluginSet(enabled=everywhere.enabled + added, disabled=everywhere.disabled)
    return msgspec.structs.replace(profile, plugins=msgspec.structs.replace(profile.plugins, multi_point=extended))
