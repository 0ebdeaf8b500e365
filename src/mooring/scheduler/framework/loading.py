"""Plugins from a file: a user's placement rule, taken in as it lies there, without packaging or installing anything.

Comes in   the path of a Python file
Goes out   the plugin classes that it defines, for the registry to judge; `PluginFileError`, in words, if there are none

 1. A file is run under a module name of its own, so that two files with one name, or one that is called like a library,
    do not get in each other's way. Nothing is written beside it, and a file that changed is read as it is now.
 2. Classes that the file only imports are not its plugins. A class without a name that others of the file inherit
    from is what they have in common, and no plugin either. All others are: whether they are any good the registry says.
 3. Loading enables nothing: a configuration does. `enabled_if_unmentioned` is for those who have not written one.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, ModuleType

import msgspec

from mooring.scheduler.config.types import (
    DEFAULT_SCHEDULER_NAME,
    ExtensionPoint,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)
from mooring.scheduler.config.types import Plugin as PluginEntry
from mooring.scheduler.framework.plugin import Plugin


class PluginFileError(ValueError):
    """A file that no plugins can be taken from: where, what was found, and what to do."""


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
    """The configuration with these plugins enabled at all their points, except those that it speaks of already.

    They are enabled in the default profile (the first, if none has the default name), with weight 1. What is said of a
    plugin's arguments does not count as speaking of it: giving arguments to a plugin does not enable it.
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
        raise PluginFileError(f"{path}: there is no such file; wanted a Python file that defines plugins") from None
    except IsADirectoryError:
        raise PluginFileError(f"{path}: is a folder; wanted one Python file that defines plugins") from None
    except OSError as error:
        raise PluginFileError(f"{path}: cannot be read: {error.strerror or error}") from error
    except SyntaxError as error:
        where = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise PluginFileError(f"{where}: is not Python: {error.msg}") from error
    except ValueError as error:  # null bytes: what Python 3.11 says of a binary file
        raise PluginFileError(f"{path}: is not Python: {error}") from error


def _run(path: Path, code: CodeType) -> ModuleType:
    module = ModuleType(_module_name(path))
    module.__file__ = str(path)
    # Dataclasses and msgspec look for a class's module by name; without this they would not find the file's types.
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        exec(code, vars(module))
    except (Exception, SystemExit) as error:
        if before is not None:
            sys.modules[module.__name__] = before
        else:
            del sys.modules[module.__name__]
        raise PluginFileError(_words(path, error)) from error
    return module


def _module_name(path: Path) -> str:
    whole = str(path.resolve())
    return f"_mooring_plugins_{path.stem}_{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def _words(path: Path, error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f"{path}:{lines[-1]}" if lines else str(path)
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{where}: fails when it is loaded: {said}"


def _is_common_base(candidate: type[Plugin], defined: list[type[Plugin]]) -> bool:
    is_named = isinstance(getattr(candidate, "name", None), str)
    return not is_named and any(other is not candidate and issubclass(other, candidate) for other in defined)


# --- enabling ---------------------------------------------------------------------------------------------------


def _entries(plugins: Plugins) -> Iterable[PluginEntry]:
    for listed in (plugins.multi_point, *(plugins.at(point) for point in ExtensionPoint)):
        yield from listed.enabled
        yield from listed.disabled


def _with_enabled(profile: Profile, added: tuple[PluginEntry, ...]) -> Profile:
    everywhere = profile.plugins.multi_point
    extended = PluginSet(enabled=everywhere.enabled + added, disabled=everywhere.disabled)
    return msgspec.structs.replace(profile, plugins=msgspec.structs.replace(profile.plugins, multi_point=extended))
