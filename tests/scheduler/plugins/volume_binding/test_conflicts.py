"""Which nodes volumes rule out, and which of several reasons is reported. The rest is tested with VolumeBinding."""

from __future__ import annotations

import pytest

from mooring.api.views.storage import PersistentVolume
from mooring.scheduler.framework.status import Code
from mooring.scheduler.plugins.volume_binding.conflicts import REASONS, BoundClaim, PodVolumeClaims, VolumeConflicts
from mooring.scheduler.plugins.volume_binding.matching import VolumeMatcher
from mooring.scheduler.plugins.volume_binding.topology import Provisioner, VolumeTopology
from tests.builders import claim, node, persistent_volume
from tests.scheduler.harness import engine_of

IN_A, IN_B, ANYWHERE = (
    persistent_volume("a", zone="a"),
    persistent_volume("b", zone="b"),
    persistent_volume("anywhere"),
)
FITS, ELSEWHERE, MISSING = 0, 1, 8


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        pytest.param([], [FITS, FITS], id="no volumes"),
        pytest.param([ANYWHERE], [FITS, FITS], id="one that is everywhere"),
        pytest.param([IN_A], [FITS, ELSEWHERE], id="one in a zone"),
        pytest.param([IN_A, IN_B], [ELSEWHERE, ELSEWHERE], id="two that are nowhere together"),
        pytest.param([None], [MISSING, MISSING], id="one that does not exist"),
        pytest.param([IN_A, None], [MISSING, ELSEWHERE], id="the first that has something against a node is reported"),
    ],
)
def test_what_bound_volumes_say_of_nodes(bound: list[PersistentVolume | None], said: list[int]) -> None:
    columns = engine_of(node("a1", zone="a"), node("b1", zone="b")).columns
    topology = VolumeTopology(columns)
    conflicts = VolumeConflicts(columns, topology, VolumeMatcher(columns, topology), Provisioner(columns, topology))
    claims = PodVolumeClaims(bound=[BoundClaim(claim("data"), volume) for volume in bound])
    assert conflicts.find(claims).tolist() == said


def test_each_fault_has_a_bit_behind_those_of_the_reasons() -> None:
    claims = PodVolumeClaims()
    first, second = claims.error_bit("broken"), claims.error_bit("worse")
    assert (first, second) == (1 << len(REASONS), 2 << len(REASONS))
    assert claims.error_bit("broken") == first
    assert all(reason.code is Code.UNRESOLVABLE for reason in REASONS)
