"""The informers of a process: one for each kind and selection, shared by all who want to know.

Comes in   who wants to know of which kind
Goes out   its informer, started once

 1. Whoever asks for the same kind and selection gets the same informer: one list, one watch, one copy.
 2. `start` starts what has been asked for since; asking comes first, so that nobody's handler misses the beginning.
"""

from __future__ import annotations

from typing import cast

from mooring.api.kinds import Kind, kind_of_view
from mooring.api.views.meta import ApiObject
from mooring.client.cache.informer import Informer
from mooring.client.cache.lister import AnyObject
from mooring.client.cache.reflector import PAGE_SIZE, Reflector
from mooring.client.interface import EVERYTHING, Client, Selection
from mooring.kit.clock import Clock
from mooring.kit.entropy import Entropy
from mooring.kit.tasks import TaskGroup


class SharedInformers:
    """The one place where a process keeps its informers."""

    def __init__(self, client: Client, clock: Clock, entropy: Entropy, *, page_size: int = PAGE_SIZE) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._page_size = page_size
        self._informers: dict[tuple[Kind, Selection, type[ApiObject]], Informer[ApiObject]] = {}
        self._reflectors: dict[str, Reflector[ApiObject]] = {}

    def informer(
        self, view: type[AnyObject], selection: Selection = EVERYTHING, *, kind: Kind | None = None
    ) -> Informer[AnyObject]:
        """The informer of a kind. `kind` is said only where the view is not the kind's own."""
        kind = kind if kind is not None else kind_of_view(view)
        key = (kind, selection, view)
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = Informer(_name_of(kind, selection))
        return cast(Informer[AnyObject], informer)

    def start(self, group: TaskGroup) -> None:
        """Start every informer that was not started yet, as a background task of the group."""
        for (kind, selection, view), informer in self._informers.items():
            name = f"{informer.name} as {view.__name__}"
            if name in self._reflectors:
                continue
            reflector = Reflector(
                self._client,
                kind,
                view,
                informer,
                clock=self._clock,
                entropy=self._entropy.fork(f"reflector of {name}"),
                selection=selection,
                page_size=self._page_size,
            )
            self._reflectors[name] = reflector
            group.start_background(reflector.run(), name=f"reflector of {informer.name}")

    @property
    def have_synced(self) -> bool:
        return all(informer.has_synced for informer in self._informers.values())

    async def wait_all_synced(self) -> None:
        """Until every handler of every informer has heard of everything that the first lists held."""
        for informer in list(self._informers.values()):
            await informer.wait_synced()

    def statistics(self) -> dict[str, dict[str, int]]:
        """By informer: what it holds and what its reflector met."""
        found = {}
        for (_, _, view), informer in self._informers.items():
            name = f"{informer.name} as {view.__name__}"
            reflector = self._reflectors.get(name)
            found[name] = informer.statistics() | (reflector.statistics() if reflector is not None else {})
        return found


def _name_of(kind: Kind, selection: Selection) -> str:
    parts = (kind.resource, selection.namespace, selection.labels, selection.fields)
    return " ".join(part for part in parts if part)
