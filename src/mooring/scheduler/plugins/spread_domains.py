"""The domains of spread constraints: which nodes count for a constraint, and which domains there are.

Comes in   the constraints of a pod, the facts of the nodes
Goes out   `Reach` for each constraint: the rows that count, and the domains among them

 1. A node counts if it has the labels of all constraints of the pod (where that is demanded) and satisfies the
    constraint's inclusion policies.
 2. All of this depends on facts alone, so it is kept until some node's facts change, and shared by all pods whose
    policies leave nobody out.
 3. Nobody else keeps it: a `Reach` has a number for each node, and a signature may not be asked about again for long.
    What a signature keeps is the `reach_key` by which it is found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mooring.api.nodeselector import required_node_affinity
from mooring.api.tolerations import find_untolerated_taint
from mooring.scheduler.cache.arrays import Bools, Int64s
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.labels import ABSENT
from mooring.scheduler.cache.pods import PodSignature
from mooring.scheduler.plugins.spread_constraints import Constraint

REACHES_MAX = 256
"""Of so many different policies is kept what they reach."""


class Reach(NamedTuple):
    """Which nodes count for one constraint."""

    eligible: Bools
    counts_everyone: bool
    """Every node counts, so that sums over domains need not leave any out."""
    domains: Int64s
    """The codes of the domains that have a node that counts."""


class Reaches(NamedTuple):
    """Which nodes count for each constraint of a pod."""

    labelled: Bools
    """Per row: whether the node has the labels of all constraints."""
    all_labelled: bool
    of_constraint: tuple[Reach, ...]


class SpreadDomains:
    """Finds and keeps what constraints reach."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._known: dict[object, Reaches] = {}
        self._fact_position = -1

    def reaches(
        self, key: object, signature: PodSignature, constraints: tuple[Constraint, ...], requires_all: bool
    ) -> Reaches:
        """The key is that of the others (see `reach_key`)."""
        position = self._columns.fact_changes.position
        if self._fact_position != position:
            self._known.clear()
            self._fact_position = position
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= REACHES_MAX:
                self._known.clear()
            known = self._known[key] = self._find(signature, constraints, requires_all)
        return known

    def _find(self, signature: PodSignature, constraints: tuple[Constraint, ...], requires_all: bool) -> Reaches:
        alive = self._columns.alive[: self._columns.height]
        labelled = alive.copy()
        for constraint in constraints:
            labelled &= constraint.column.codes[: len(alive)] != ABSENT
        candidates = labelled if requires_all else alive
        reaches = tuple(self._reach(signature, constraint, candidates) for constraint in constraints)
        return Reaches(labelled, bool((labelled == alive).all()), reaches)

    def _reach(self, signature: PodSignature, constraint: Constraint, candidates: Bools) -> Reach:
        eligible = candidates & self._included(signature, constraint)
        codes = constraint.column.codes[: len(eligible)][eligible]
        nodes_in_domain = np.bincount(codes, minlength=constraint.column.codes_max)
        everyone = int(np.count_nonzero(eligible)) == self._columns.node_count
        return Reach(eligible, everyone, np.flatnonzero(nodes_in_domain))

    def _included(self, signature: PodSignature, constraint: Constraint) -> Bools:
        """Per row: whether the node counts under the constraint's inclusion policies."""
        columns = self._columns
        rows = slice(0, columns.height)
        included = np.ones(columns.height, dtype=np.bool_)
        if constraint.honours_affinity and _has_affinity(signature):
            included &= columns.node_selection.required(required_node_affinity(signature.view), rows)
        if constraint.honours_taints:
            tolerations = signature.spec.tolerations
            is_kept_away = columns.taints.judge(
                lambda taints: find_untolerated_taint(taints, tolerations) is not None, np.bool_
            )
            included &= ~is_kept_away[columns.taints.set_of_row[rows]]
        return included


def reach_key(signature: PodSignature, constraints: tuple[Constraint, ...], requires_all: bool) -> object:
    """Equal for constraints that reach the same nodes.

    `requires_all`: whether a node without one of the labels counts for none of the constraints.
    """
    return requires_all, tuple([_policy_key(signature, constraint) for constraint in constraints])


def _policy_key(signature: PodSignature, constraint: Constraint) -> object:
    # By the signature's key and not the signature itself, which holds this and could then not be freed at once.
    return (
        constraint.column,
        signature.key if constraint.honours_affinity and _has_affinity(signature) else None,
        signature.spec.tolerations if constraint.honours_taints else None,
    )


def _has_affinity(signature: PodSignature) -> bool:
    affinity = signature.spec.affinity
    return bool(signature.spec.node_selector) or (affinity is not None and affinity.node_affinity is not None)
