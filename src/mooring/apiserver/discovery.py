"""Discovery documents: groups, versions and resources, their order, and kinds that are not stored.

Input: the table of resources. Output: APIVersions, APIGroupList, APIGroup, APIResourceList, APIGroupDiscoveryList.

1. A document is created on demand, and again after a resource was added or removed.
2. A built-in kind is listed by name only, a custom kind with group and version, as in kube-apiserver.
3. The storage version hash changes when the stored form of a kind changes. Events are stored in the form of the
   core group.
4. The first group or version is the one that a client without a preference uses. Built-in groups have the order of
   kube-apiserver; custom groups follow by name. Versions are ordered by maturity and number (v10, v2, v1, v2beta1,
   v1alpha1); other names follow alphabetically.
5. Reviews, bindings and plans can be created only. They have no registry, but discovery and OpenAPI list them. Plans
   are listed while the scheduler of this cluster answers them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from mooring.api import kinds
from mooring.api.document import Document
from mooring.api.kinds import Kind, Subresource
from mooring.apiserver.resources import Resource, ResourceTable

GROUPS = (
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
)

_RANKS = {group: rank for rank, group in enumerate(GROUPS)}
_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_MATURITY = {None: 2, "beta": 1, "alpha": 0}


def groups_in_order(groups: Iterable[str]) -> list[str]:
    return sorted(groups, key=lambda group: (_RANKS.get(group, len(GROUPS)), group))


def versions_in_order(versions: Iterable[str]) -> list[str]:
    return sorted(versions, key=_version_key)


def _version_key(version: str) -> tuple[int, int, int, int, str]:
    match = _VERSION.fullmatch(version)
    if match is None:
        return 1, 0, 0, 0, version
    major, maturity, minor = match.groups()
    return 0, -_MATURITY[maturity], -int(major), -int(minor or 0), version


_AUTHENTICATION = "authentication.k8s.io/v1"
_AUTHORIZATION = "authorization.k8s.io/v1"

BINDING = Kind("v1", "Binding", "bindings")
REVIEWS = tuple(
    Kind(api_version, kind, f"{kind.lower()}s", is_namespaced=kind.startswith("Local"))
    for api_version, kind in (
        (_AUTHENTICATION, "SelfSubjectReview"),
        (_AUTHENTICATION, "TokenReview"),
        (_AUTHORIZATION, "LocalSubjectAccessReview"),
        (_AUTHORIZATION, "SelfSubjectAccessReview"),
        (_AUTHORIZATION, "SelfSubjectRulesReview"),
        (_AUTHORIZATION, "SubjectAccessReview"),
    )
)
VIRTUAL_KINDS = (BINDING, *REVIEWS)
"""The kinds that every API server has and never stores."""
PLAN = Kind("mooring.dev/v1alpha1", "Plan", "plans", is_namespaced=False)


AGGREGATED_KIND, AGGREGATED_VERSION = "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_CUSTOM_SUBRESOURCES = ("status", "scale")
_HASH_BYTES = 8

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class AggregatedDiscovery:
    """The aggregated discovery document."""

    document: Document
    etag: str


@dataclass(slots=True)
class _DiscoveryCache:
    """What has been made from one state of the table, and the kinds that are not stored."""

    generation: int
    virtual: tuple[Kind, ...]
    groups: dict[str, list[str]]
    """The versions of each group, the preferred one first."""
    lists: dict[str, Document] = field(default_factory=dict)
    aggregated: dict[bool, AggregatedDiscovery] = field(default_factory=dict)


class Discovery:
    """The discovery documents of a server."""

    def __init__(
        self, resources: ResourceTable, virtual: Callable[[], tuple[Kind, ...]] = lambda: VIRTUAL_KINDS
    ) -> None:
        self._resources = resources
        self._virtual = virtual
        self._made = _DiscoveryCache(-1, (), {})

    def is_built_in_group(self, group: str) -> bool:
        """Whether a group is the server's own, in whatever version; users define kinds in others."""
        built_in = (resource.kind.group for resource in self._resources if resource.struct is not None)
        return any(kind.group == group for kind in self._virtual()) or group in built_in

    def virtual_kinds(self) -> tuple[Kind, ...]:
        """The kinds that this server has and never stores."""
        return self._virtual()

    def api_versions(self) -> list[str]:
        """All API versions, those of the core group first."""
        groups = self._current().groups
        named = [f"{group}/{version}" for group in groups_in_order(groups) if group for version in groups[group]]
        return [*groups.get("", ()), *named]

    def group_list(self) -> Document:
        groups = self._current().groups
        found = [_group(name, groups[name]) for name in groups_in_order(groups) if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}

    def group(self, name: str) -> Document | None:
        versions = self._current().groups.get(name)
        return None if versions is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}

    def resource_list(self, api_version: str) -> Document | None:
        """The resources of an API version; None if it has none."""
        made = self._current()
        group, _, version = api_version.rpartition("/")
        if version not in made.groups.get(group, ()):
            return None
        found = made.lists.get(api_version)
        if found is None:
            found = made.lists[api_version] = self._resource_list(api_version)
        return found

    def aggregated(self, *, is_core: bool) -> AggregatedDiscovery:
        """Every group with everything in it; or the core group alone."""
        made = self._current()
        found = made.aggregated.get(is_core)
        if found is None:
            names = [name for name in groups_in_order(made.groups) if (name == "") is is_core]
            items = [self._discovered_group(name, made.groups[name]) for name in names]
            head = {"kind": AGGREGATED_KIND, "apiVersion": AGGREGATED_VERSION, "metadata": {}}
            document = {**head, "items": items}
            etag = hashlib.sha512(_encode(document)).hexdigest().upper()
            found = made.aggregated[is_core] = AggregatedDiscovery(document, f'"{etag}"')
        return found

    def _current(self) -> _DiscoveryCache:
        virtual = self._virtual()
        if self._made.generation != self._resources.generation or self._made.virtual != virtual:
            served = [resource.kind for resource in self._resources]
            versions: dict[str, dict[str, None]] = {}
            for kind in (*virtual, *served):
                versions.setdefault(kind.group, {})[kind.api_version.rpartition("/")[2]] = None
            groups = {group: versions_in_order(names) for group, names in versions.items()}
            self._made = _DiscoveryCache(self._resources.generation, virtual, groups)
        return self._made

    def _of_version(self, api_version: str) -> tuple[list[Resource], list[Kind]]:
        served = [resource for resource in self._resources if resource.kind.api_version == api_version]
        return (
            sorted(served, key=lambda resource: resource.kind.plural),
            [kind for kind in self._virtual() if kind.api_version == api_version],
        )

    def _resource_list(self, api_version: str) -> Document:
        served, virtual = self._of_version(api_version)
        found = [_listed_virtual(kind) for kind in virtual]
        found += [entry for resource in served for entry in _listed(resource)]
        # A subresource follows its resource, and those of custom kinds keep their own order.
        found.sort(key=lambda entry: entry["name"].partition("/")[0])
        head: Document = {"kind": "APIResourceList"}
        if "/" in api_version:
            head["apiVersion"] = "v1"  # the resource list of the core group is older, and has fewer fields
        return {**head, "groupVersion": api_version, "resources": found}

    def _discovered_group(self, group: str, versions: list[str]) -> Document:
        found = []
        for version in versions:
            served, virtual = self._of_version(f"{group}/{version}" if group else version)
            resources = [_discovered_virtual(kind) for kind in virtual]
            resources += [_discovered(resource) for resource in served]
            resources.sort(key=lambda entry: entry["resource"])
            found.append({"version": version, "resources": resources, "freshness": "Current"})
        return {"metadata": {"name": group} if group else {}, "versions": found}


def _group(name: str, versions: list[str]) -> Document:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


# --- the resources of one version -------------------------------------------------------------------------------


def _listed_virtual(kind: Kind) -> Document:
    names = {"name": kind.plural, "singularName": kind.kind.lower(), "namespaced": kind.is_namespaced}
    return {**names, "kind": kind.kind, "verbs": ["create"]}


def _listed(resource: Resource) -> Iterator[Document]:
    kind = resource.kind
    entry: Document = {
        "name": kind.plural,
        "singularName": resource.singular,
        "namespaced": kind.is_namespaced,
        "kind": kind.kind,
        "verbs": _verbs(resource),
    }
    yield {**entry, **_short_names(resource), "storageVersionHash": _storage_version_hash(resource)}
    for subresource in _subresources(resource):
        below: Document = {
            "name": f"{kind.plural}/{subresource.name}",
            "singularName": "",
            "namespaced": kind.is_namespaced,
        }
        if subresource.api_version:
            group, _, version = subresource.api_version.rpartition("/")
            below |= {"group": group, "version": version}
        yield {**below, "kind": subresource.kind or kind.kind, "verbs": list(subresource.verbs)}


def _storage_version_hash(resource: Resource) -> str:
    kind = kinds.CORE_EVENT if resource.kind is kinds.EVENT else resource.kind
    version = resource.storage_version or kind.api_version.rpartition("/")[2]
    digest = hashlib.sha256(f"{kind.group}/{version}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:_HASH_BYTES]).decode()


def _verbs(resource: Resource) -> list[str]:
    if resource.struct is not None:
        return list(resource.verbs)
    return [verb for verb in _CUSTOM_VERBS if verb in resource.verbs]


def _subresources(resource: Resource) -> list[Subresource]:
    found = resource.subresources
    names = sorted(found) if resource.struct is not None else [name for name in _CUSTOM_SUBRESOURCES if name in found]
    return [found[name] for name in names]


def _short_names(resource: Resource) -> Document:
    names: Document = {}
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    if resource.categories:
        names["categories"] = list(resource.categories)
    return names


# --- the same, aggregated ---------------------------------------------------------------------------------------


def _discovered_virtual(kind: Kind) -> Document:
    entry = {"resource": kind.plural, "responseKind": _response_kind("", kind.kind), "scope": _scope(kind)}
    return {**entry, "singularResource": kind.kind.lower(), "verbs": ["create"]}


def _discovered(resource: Resource) -> Document:
    kind = resource.kind
    own_version = kind.api_version if resource.struct is None else ""
    entry: Document = {
        "resource": kind.plural,
        "responseKind": _response_kind(own_version, kind.kind),
        "scope": _scope(kind),
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
        **_short_names(resource),
    }
    below = [
        {
            "subresource": subresource.name,
            "responseKind": _response_kind(subresource.api_version or own_version, subresource.kind or kind.kind),
            "verbs": list(subresource.verbs),
        }
        for subresource in _subresources(resource)
    ]
    return {**entry, "subresources": below} if below else entry


def _response_kind(api_version: str, kind: str) -> Document:
    group, _, version = api_version.rpartition("/")
    return {"group": group, "version": version, "kind": kind}


def _scope(kind: Kind) -> str:
    return "Namespaced" if kind.is_namespaced else "Cluster"
