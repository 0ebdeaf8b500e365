"""A small cluster that tokens can be for: accounts, pods, nodes and secrets by name."""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.access.certificates import new_key
from mooring.apiserver.access.service_account_tokens import ServiceAccountTokens, TokenSigner
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy

ISSUER = "https://kubernetes.default.svc.cluster.local"
_KEY = new_key()


class Cluster:
    """What is there, and tokens for it."""

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
