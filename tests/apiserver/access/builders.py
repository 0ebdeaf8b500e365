"""Builders of roles, bindings and requests.

may("get list", "pods")                         a rule: verbs, resources, and in which API groups
role(may("get", "pods"), "reader", "web")       with a namespace a Role, without one a ClusterRole
binding("User anna", to="Role reader", namespace="web")
request_attributes("anna", "list pods in web")                the request of a user; `/healthz` is a non-resource path

Cluster: service accounts, pods, nodes and secrets by name, and an issuer of tokens bound to them.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.access.authorization import Attributes, path_attributes
from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.access.rbac import RoleAuthorizer
from mooring.apiserver.access.service_account_tokens import ServiceAccountTokens, TokenSigner
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.serving.users import User

RBAC = "rbac.authorization.k8s.io"


def may(verbs: str, resources: str = "", groups: str = "core", names: str = "", paths: str = "") -> Document:
    rule: Document = {"verbs": verbs.split()}
    if resources:
        rule["apiGroups"] = ["" if group == "core" else group for group in groups.split()]
        rule["resources"] = resources.split()
    if names:
        rule["resourceNames"] = names.split()
    if paths:
        rule["nonResourceURLs"] = paths.split()
    return rule


def role(rules: list[Document], name: str, namespace: str = "", labels: Document | None = None) -> Document:
    metadata: Document = {"name": name, **({"namespace": namespace} if namespace else {})}
    if labels:
        metadata["labels"] = labels
    return {"kind": "Role" if namespace else "ClusterRole", "metadata": metadata, "rules": rules}


def binding(*subjects: str, to: str, name: str = "b", namespace: str = "") -> Document:
    kind, _, role_name = to.partition(" ")
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "subjects": [_subject(text) for text in subjects],
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role_name},
    }


def _subject(text: str) -> Document:
    kind, _, name = text.partition(" ")
    if kind != "ServiceAccount":
        return {"kind": kind, "name": name, "apiGroup": RBAC}
    name, _, namespace = name.partition("/")
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


def authorizer(*documents: Document) -> RoleAuthorizer:
    made = RoleAuthorizer()
    for document in documents:
        put(made, document)
    return made


def put(into: RoleAuthorizer, document: Document) -> None:
    metadata = document["metadata"]
    into.put(f"{document['kind'].lower()}s", metadata.get("namespace", ""), metadata["name"], document)


def user(name: str, *groups: str) -> User:
    return User(name, groups=groups)


def request_attributes(who: User | str, what: str) -> Attributes:
    """`get pods/log web-1 in shop`, `list deployments.apps`, `get /healthz`."""
    caller = User(who) if isinstance(who, str) else who
    message = what.split()
    if message[1].startswith("/"):
        return path_attributes(caller, message[0], message[1])
    namespace = message[message.index("in") + 1] if "in" in message else ""
    message = message[: message.index("in")] if "in" in message else message
    combined, _, api_group = message[1].partition(".")
    resource, _, subresource = combined.partition("/")
    return Attributes(
        caller,
        message[0],
        namespace=namespace,
        api_group=api_group,
        resource=resource,
        subresource=subresource,
        name=message[2] if len(message) > 2 else "",
    )


ISSUER = "https://kubernetes.default.svc.cluster.local"
_KEY = new_key()


class Cluster:
    """Objects by resource, namespace and name, and service account tokens bound to them."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.objects: dict[tuple[str, str, str], Document] = {}
        self.account = self.add("serviceaccounts", "web", "robot", "uid-robot")
        self.tokens = ServiceAccountTokens(TokenSigner(_KEY), self.clock, Entropy(1), self.lookup)

    def add(self, resource: str, namespace: str, name: str, uid: str, spec: Document | None = None) -> Document:
        document: Document = {"metadata": {"name": name, "namespace": namespace, "uid": uid}, "spec": spec or {}}
        self.objects[resource, namespace, name] = document
        return document

    def lookup(self, resource: str, namespace: str, name: str) -> Document | None:
        return self.objects.get((resource, namespace, name))
