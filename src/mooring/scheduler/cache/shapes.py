"""The registry of shapes: pods that are alike share one, and one that nobody uses is forgotten.

Comes in   shape keys with a pod that has it
Goes out   the shape, with its request vector, its label class and the terms that it carries

 1. A registered shape is in the registry, its terms are watched and its label class exists. A shape that was swept
    is none of that; pods that still have it are given the `current` one before they are placed or decided about.
 2. Sweeps cost little: they come when the registry has doubled since the last one.
"""

from __future__ import annotations

from mooring.api.resources import node_accounting_requests
from mooring.api.views.pod import Pod
from mooring.scheduler.cache.pods import Shape
from mooring.scheduler.cache.resources import ResourceColumns
from mooring.scheduler.cache.selectors import SelectorColumns
from mooring.scheduler.cache.terms import PodTerms, TermColumns

SHAPES_BEFORE_SWEEP = 4096
RECENT_USES = 2048
"""A shape without pods survives a sweep if it was asked for among the last so many."""


class ShapeRegistry:
    """All shapes in use, by key."""

    __slots__ = ("_clock", "_resources", "_selectors", "_shapes", "_sweep_at", "_terms")

    def __init__(self, resources: ResourceColumns, selectors: SelectorColumns, terms: TermColumns) -> None:
        self._resources = resources
        self._selectors = selectors
        self._terms = terms
        self._shapes: dict[bytes, Shape] = {}
        self._clock = 0
        self._sweep_at = SHAPES_BEFORE_SWEEP

    def __len__(self) -> int:
        return len(self._shapes)

    def intern(self, key: bytes, view: Pod) -> Shape:
        """The shape with this key; made from `view` if nobody had it yet."""
        self._clock += 1
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) >= self._sweep_at:
                self.sweep()
            shape = Shape(key, view)
            use = node_accounting_requests(view)
            shape.request_vector = self._resources.vector(use.requests, use.cpu_milli_non_zero, use.memory_non_zero)
            self.register(shape)
        shape.used_at = self._clock
        return shape

    def current(self, shape: Shape) -> Shape:
        """The registered shape with this one's key: itself, or after a sweep maybe another one that came since."""
        if shape.registered:
            return shape
        known = self._shapes.get(shape.key)
        if known is None:
            self.register(shape)
            known = shape
        known.used_at = self._clock
        return known

    def register(self, shape: Shape) -> None:
        terms = PodTerms(shape.view)
        shape.affinity_error = terms.error
        shape.label_class = self._selectors.label_class(shape.namespace, shape.labels)
        shape.terms = self._terms.adopt(terms)
        shape.registered = True
        self._shapes[shape.key] = shape

    def sweep(self) -> None:
        """Forgets the shapes that no placed pod has and that nobody asked for lately."""
        stale = [s for s in self._shapes.values() if not s.pods_placed and s.used_at < self._clock - RECENT_USES]
        for shape in stale:
            self._terms.release(shape.terms)
            shape.terms = ()
            shape.registered = False
            shape.memo.clear()
            del self._shapes[shape.key]
        kept = {id(shape.label_class) for shape in self._shapes.values()}
        for shape in stale:
            if id(shape.label_class) not in kept:
                self._selectors.forget_class(shape.label_class)
        self._sweep_at = max(SHAPES_BEFORE_SWEEP, 2 * len(self._shapes))
