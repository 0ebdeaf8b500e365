"""Parameters of requests: which ones an operation takes, and of which types they are.

They are told by name; every name means the same everywhere, but for the path of a proxied request, which is part of the
address or of the query.
"""

from __future__ import annotations

from collections.abc import Mapping

LISTING = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
)
WRITING = ("dryRun", "fieldManager", "fieldValidation")
PATCHING = (*WRITING, "force")
DELETING = (
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
)
DELETING_MANY = tuple(sorted((*(name for name in LISTING if name not in ("allowWatchBookmarks", "watch")), *DELETING)))
LOG = (
    "container",
    "follow",
    "insecureSkipTLSVerifyBackend",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "stream",
    "tailLines",
    "timestamps",
)
_STREAMS = ("container", "stderr", "stdin", "stdout", "tty")
CONNECTED: Mapping[str, tuple[str, ...]] = {
    "NodeProxyOptions": ("pathQuery",),
    "PodAttachOptions": _STREAMS,
    "PodExecOptions": ("command", *_STREAMS),
    "PodPortForwardOptions": ("ports",),
    "PodProxyOptions": ("pathQuery",),
    "ServiceProxyOptions": ("pathQuery",),
}
"""Of what connects a client with a pod, a node or a service."""

IN_PATH = frozenset({"name", "namespace", "path"})

_INTEGERS = frozenset(
    {"gracePeriodSeconds", "limit", "limitBytes", "ports", "sinceSeconds", "tailLines", "timeoutSeconds"}
)
_FLAGS = frozenset(
    {
        "allowWatchBookmarks",
        "follow",
        "force",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "insecureSkipTLSVerifyBackend",
        "orphanDependents",
        "previous",
        "sendInitialEvents",
        "stderr",
        "stdin",
        "stdout",
        "timestamps",
        "tty",
        "watch",
    }
)


def type_of(name: str) -> str:
    if name in _INTEGERS:
        return "integer"
    return "boolean" if name in _FLAGS else "string"


def shown_name(name: str) -> str:
    """As clients write it."""
    return "path" if name == "pathQuery" else name
