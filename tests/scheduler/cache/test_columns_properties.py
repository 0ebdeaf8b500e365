"""Columns after any history equal columns built anew from the remaining objects; a transaction leaves no trace."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

from mooring.scheduler.cache.columns import Columns, Transaction
from mooring.scheduler.cache.pods import PodInfo
from tests.scheduler.cache.logical_state import logical_state
from tests.scheduler.random_history import History, Seeds, event_seeds, forgetful, world_seeds
from tests.scheduler.random_world import World


@pytest.mark.parametrize("memory", ["roomy", "cramped"])
@settings(max_examples=60)
@given(seed=world_seeds, events=event_seeds)
def test_columns_after_any_history_equal_newly_built_columns(memory: str, seed: int, events: Seeds) -> None:
    history = History(seed)
    with forgetful(memory == "cramped"):
        for event in events:
            history.happen(event)
        counted = tuple(history.counted.values())
        anew = logical_state(history.built_anew().columns, counted)
        assert logical_state(history.engine.columns, counted) == anew


@settings(max_examples=60)
@given(seed=world_seeds, events=event_seeds, suppositions=event_seeds)
def test_a_transaction_leaves_no_trace(seed: int, events: Seeds, suppositions: Seeds) -> None:
    history = History(seed)
    for event in events:
        history.happen(event)
    columns = history.engine.columns
    strangers = [columns.record(World(seed).pod(history.templates, f"s{seed}")) for seed in set(suppositions)]
    counted = tuple(history.counted.values())
    before, arrays, order = logical_state(columns, counted), _arrays(columns), _order(columns)
    positions = (columns.usage_changes.position, columns.fact_changes.position)
    with Transaction(columns) as transaction:
        for supposition in suppositions:
            _suppose(columns, transaction, strangers, World(supposition))
    assert _order(columns) == order
    now = _arrays(columns)
    for key, (owner, place, array) in arrays.items():
        assert key in now, f"{place} of {owner} is gone"
        assert _same_bytes(now[key].array, array), f"{place} of {owner}"
    assert logical_state(columns, counted) == before
    assert (columns.usage_changes.position, columns.fact_changes.position) == positions


def _suppose(columns: Columns, transaction: Transaction, strangers: list[PodInfo], world: World) -> None:
    """A pod is taken away, or one comes: a stranger, one that was nominated, or one that was taken away before."""
    placed = [pod for pods in columns.pods_on for pod in pods.values()]
    if placed and world.integer_below(2):
        transaction.displace(world.choose(placed))
    elif columns.row_of:
        nominated = [pod for name in columns.nominations.nodes() for pod in columns.nominations.on(name)]
        waiting = [pod for pod in (*strangers, *nominated, *columns.pods.values()) if pod.row < 0]
        if waiting:
            transaction.place(world.choose(waiting), world.choose(list(columns.row_of.values())))


def _order(columns: Columns) -> list[list[str]]:
    return [list(pods) for pods in columns.pods_on]


class Found(NamedTuple):
    """An array, as it was, and whose it is."""

    owner: object
    place: str
    array: npt.NDArray[np.generic]


def _arrays(root: object) -> dict[tuple[int, str], Found]:
    """Copies of all arrays that can be reached from here, by owner and place."""
    found: dict[tuple[int, str], Found] = {}
    seen: dict[int, object] = {}
    unseen = [root]
    while unseen:
        owner = unseen.pop()
        if id(owner) in seen:
            continue
        seen[id(owner)] = owner
        for place, thing in _parts_of(owner):
            if isinstance(thing, np.ndarray):
                found[id(owner), place] = Found(owner, place, thing.copy())
            else:
                unseen.append(thing)
    return found


def _parts_of(owner: object) -> list[tuple[str, object]]:
    if isinstance(owner, dict):
        return [(key if isinstance(key, str) else f"#{id(key)}", value) for key, value in owner.items()]
    if isinstance(owner, list | tuple):
        return [(str(place), value) for place, value in enumerate(owner)]
    if not type(owner).__module__.startswith("mooring.scheduler.cache"):
        return []
    names = [name for kind in type(owner).__mro__ for name in getattr(kind, "__slots__", ())]
    names += list(getattr(owner, "__dict__", ()))
    return [(name, getattr(owner, name)) for name in names if hasattr(owner, name)]


def _same_bytes(now: npt.NDArray[np.generic], before: npt.NDArray[np.generic]) -> bool:
    """Equal as far as both go; an array may have grown meanwhile, if nothing is written behind."""
    common = before.shape[-1]
    return now[..., :common].tobytes() == before.tobytes() and not now[..., common:].any()
