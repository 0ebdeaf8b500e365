"""Random pods for property tests: a valid pod with a few changes, some of which make it invalid."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from mooring.api.document import Document

VALID: Document = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.9"}]},
}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "matchLabelKeys": ["app"],
}
CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}

CHANGES: list[tuple[str, Any]] = [
    *[("metadata.labels.app", value) for value in ("web-1a", "", "web-1-", ".web-.1.", "x" * 64, 7)],
    *[(f"metadata.labels.{key}", "x") for key in ("example/app", "bad key", "/x")],
    ("metadata.annotations.note", "a text"),
    ("metadata.annotations.bad key", "x"),
    ("metadata.annotations", {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}),
    ("metadata.annotations", {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}),
    ("metadata.annotations", {"kubernetes.io/config.mirror": "x"}),
    ("metadata.finalizers", ["example.com/wait"]),
    ("metadata.finalizers", ["wait"]),
    ("metadata.ownerReferences", [OWNER]),
    ("metadata.ownerReferences", [OWNER, OWNER]),
    ("metadata.ownerReferences", [{**OWNER, "uid": ""}]),
    ("metadata.colour", "red"),
    ("metadata.namespace", "elsewhere"),
    ("metadata.resourceVersion", "7"),
    ("metadata.uid", "chosen"),
    *[("spec.containers.0.name", name) for name in ("web", "Web", "")],
    *[("spec.containers.0.image", image) for image in ("pause", "pause:latest", " pause", "")],
    ("spec.containers.0.args", ["run", "$(A)"]),
    ("spec.containers.0.env", [{"name": "A", "value": "$(B)"}]),
    ("spec.containers.0.env", [{"name": "a b"}]),
    *[("spec.containers.0.resources", {"requests": {"cpu": amount}}) for amount in ("10m", 1, 0.5, "-1", "much")],
    ("spec.containers.0.resources", {"limits": {"memory": "16Mi"}}),
    ("spec.containers.0.colour", "red"),
    ("spec.containers", []),
    ("spec.volumes", [{"name": "a", "emptyDir": {}}]),
    ("spec.volumes", [{"name": "a", "ephemeral": {"volumeClaimTemplate": CLAIM}}]),
    (
        "spec.volumes",
        [
            {"name": "a", "ephemeral": {"volumeClaimTemplate": CLAIM}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "web-a"}},
        ],
    ),
    ("spec.nodeSelector", {"disk": "ssd"}),
    ("spec.nodeSelector", {"bad key": "ssd"}),
    *[("spec.terminationGracePeriodSeconds", seconds) for seconds in (0, -1, "30")],
    *[("spec.restartPolicy", policy) for policy in ("Never", "Sometimes")],
    ("spec.schedulingGates", [{"name": "example.com/wait"}]),
    ("spec.topologySpreadConstraints", [SPREAD]),
    *[("spec.nodeName", name) for name in ("n1", "Bad Node")],
    ("spec.hostNetwork", True),
    ("spec.priorityClassName", "missing"),
    ("spec.priorityClassName", "system-node-critical"),
    ("spec.size", 7),
    ("status", {"phase": "Running"}),
]

NAMES = st.sampled_from(["a", "web", "web-1", "a.b", "web-1-", "-web", "Web", "", "x" * 64, "x" * 254, "a/b"])


def changed(pod: Document, path: str, value: Any) -> Document:
    """A copy of the pod with one value at a path of names and indexes."""
    made = deepcopy(pod)
    holder: Any = made
    *steps, last = path.split(".", 3)
    for step in steps:
        if step.isdecimal():
            if not holder:
                return made
            holder = holder[int(step)]
        else:
            holder = holder.setdefault(step, {})
    holder[last] = value
    return made


def _with_changes(changes: list[tuple[str, Any]]) -> Document:
    pod = deepcopy(VALID)
    for path, value in changes:
        pod = changed(pod, path, value)
    return pod


PODS = st.lists(st.sampled_from(CHANGES), max_size=2).map(_with_changes)
