"""Where users' plugins come from: a file, an importable class, or an installed package.

Comes in   what follows `--plugin` (`rules.py`, `package.module:Class`); the entry points of what is installed
Goes out   plugin classes, for the registry to judge; `PluginFileError`, in words, where there are none

    [project.entry-points."mooring.plugins"]
    quiet-hours = "acme.placement:QuietHours"

 1. Entry points make a plugin known; a configuration enables it. A class that is named on the command line is wanted.
 2. What fails while it is imported is told with its name, before anything is scheduled.
"""

from __future__ import annotations

import importlib
import re
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from mooring.scheduler.framework.loading import PluginFileError, load_plugins
from mooring.scheduler.framework.plugin import Plugin

ENTRY_POINT_GROUP = "mooring.plugins"
_CLASS_NAME = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)")


def plugins_from(source: str) -> list[type[Plugin]]:
    """The plugins of a file, or the one class that `package.module:Class` names."""
    match = _CLASS_NAME.fullmatch(source)
    if match is None or Path(source).exists():
        return load_plugins(Path(source))
    return [_imported(source, match["module"], match["name"])]


def installed_plugins() -> list[type[Plugin]]:
    """The plugins of all installed packages that offer some, by the names of their entry points."""
    found = sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value))
    return [_offered(point) for point in found]


def _imported(source: str, module_name: str, name: str) -> type[Plugin]:
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise PluginFileError(f"{source}: {module_name} cannot be imported: {_words(error)}") from error
    if not hasattr(module, name):
        raise PluginFileError(f"{source}: {module_name} has no {name}")
    return _checked(source, getattr(module, name))


def _offered(point: EntryPoint) -> type[Plugin]:
    package = point.dist.name if point.dist is not None else "some package"
    source = f"entry point {point.name} of {package} ({point.value})"
    try:
        offered = point.load()
    except Exception as error:
        raise PluginFileError(f"{source}: cannot be imported: {_words(error)}; repair or uninstall it") from error
    return _checked(source, offered)


def _checked(source: str, found: object) -> type[Plugin]:
    if isinstance(found, type) and issubclass(found, Plugin):
        return found
    raise PluginFileError(f"{source}: is {found!r}, wanted a class that inherits from FilterPlugin, ScorePlugin, …")


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
