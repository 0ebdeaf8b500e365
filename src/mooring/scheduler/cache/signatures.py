"""The registry of signatures: pods that are alike share one, and one that nobody uses is forgotten.

Comes in   signature keys with a pod that has it
Goes out   the signature, with its request vector, its label class and the terms that it carries

 1. A registered signature is in the registry, its terms are watched and its label class exists. A signature that was
    swept is none of that; pods that still have it are given the `current` one before they are placed or decided
    about.
 2. Sweeps cost little: they come when the registry has doubled since the last one.
"""

from __future__ import annotations

from mooring.api.resources import node_accounting_requests
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.pods import PodSignature
from mooring.scheduler.cache.resources import ResourceColumns
from mooring.scheduler.cache.selectors import SelectorColumns
from mooring.scheduler.cache.terms import PodTerms, TermColumns

SIGNATURES_BEFORE_SWEEP = 4096
RECENT_USES = 2048
"""A signature without pods survives a sweep if it was asked for among the last so many."""


class SignatureRegistry:
    """All signatures in use, by key."""

    __slots__ = ("_clock", "_resources", "_selectors", "_signatures", "_sweep_at", "_terms")

    def __init__(self, resources: ResourceColumns, selectors: SelectorColumns, terms: TermColumns) -> None:
        self._resources = resources
        self._selectors = selectors
        self._terms = terms
        self._signatures: dict[bytes, PodSignature] = {}
        self._clock = 0
        self._sweep_at = SIGNATURES_BEFORE_SWEEP

    def __len__(self) -> int:
        return len(self._signatures)

    def intern(self, key: bytes, view: Pod) -> PodSignature:
        """The signature with this key; made from `view` if nobody had it yet."""
        self._clock += 1
        signature = self._signatures.get(key)
        if signature is None:
            if len(self._signatures) >= self._sweep_at:
                self.sweep()
            signature = PodSignature(key, view)
            use = node_accounting_requests(view)
            signature.request_vector = self._resources.vector(use.requests, use.cpu_milli_non_zero, use.memory_non_zero)
            self.register(signature)
        signature.used_at = self._clock
        return signature

    def current(self, signature: PodSignature) -> PodSignature:
        """The registered signature with this one's key: itself, or after a sweep maybe another one that came since."""
        if signature.registered:
            return signature
        known = self._signatures.get(signature.key)
        if known is None:
            self.register(signature)
            known = signature
        known.used_at = self._clock
        return known

    def register(self, signature: PodSignature) -> None:
        terms = PodTerms(signature.view)
        signature.affinity_error = terms.error
        signature.label_class = self._selectors.label_class(signature.namespace, signature.labels)
        signature.terms = self._terms.adopt(terms)
        signature.registered = True
        self._signatures[signature.key] = signature

    def sweep(self) -> None:
        """Forgets the signatures that no placed pod has and that nobody asked for lately."""
        stale = [s for s in self._signatures.values() if not s.pods_placed and s.used_at < self._clock - RECENT_USES]
        for signature in stale:
            self._terms.release(signature.terms)
            signature.terms = ()
            signature.registered = False
            signature.memo.clear()
            del self._signatures[signature.key]
        kept = {id(signature.label_class) for signature in self._signatures.values()}
        for signature in stale:
            if id(signature.label_class) not in kept:
                self._selectors.forget_class(signature.label_class)
        self._sweep_at = max(SIGNATURES_BEFORE_SWEEP, 2 * len(self._signatures))
