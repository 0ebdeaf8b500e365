"""Mooring: the Kubernetes scheduling system in Python.

Packages, from the bottom up. Imports point upwards in this list only; import-linter enforces it.

  kit         clock, event loop, entropy, tasks
  api         kinds, schemas, decoding, typed views, quantities, selectors
  store       a numbered history of keys and values: in memory, on SQLite, on etcd
  client      the client interface; HTTP, reflectors and informers, leader election
  serving     the HTTP server and the secure port of a component
  apiserver, scheduler, controllers, kubelet
              the components; they do not import each other and use `client`
  cluster     builds and wires the components
  cli         the commands

ARCHITECTURE.md follows a pod through them. As a library (docs/library.md):

  Engine      decides where pods go
  Cluster     runs a cluster in this process
  load        reads objects from files

They are imported when they are first used: `import mooring` alone is cheap. `__init__.pyi` has their types.
"""

from importlib import import_module

__all__ = ["Cluster", "Engine", "__version__", "load"]

__version__ = "0.1.0"

# As text: an import, even in a function, would make every module that reads the version depend on the components.
_MODULES = {"Cluster": "mooring.cluster.embedded", "Engine": "mooring.scheduler.engine", "load": "mooring.api.load"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'mooring' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_MODULES))
