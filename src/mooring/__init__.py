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

ARCHITECTURE.md follows a pod through them.
"""

__version__ = "0.1.0"
