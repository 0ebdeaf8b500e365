"""Ranges of user ids: no two pods of this machine have the same one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.kubelet.processes import pod_users
from mooring.kubelet.processes.pod_users import FIRST_ID, RANGE_SIZE, RANGES_MAX, NoRangeError, PodUsers, id_map


def test_pods_have_ranges_of_their_own_also_of_different_kubelets(tmp_path: Path) -> None:
    first, second = PodUsers(tmp_path / "lock"), PodUsers(tmp_path / "lock")
    ids = [first.first_id("a"), first.first_id("b"), second.first_id("a"), first.first_id("a")]
    assert ids == [FIRST_ID + number * RANGE_SIZE for number in (0, 1, 2, 0)]
    first.release("a")
    first.release("unknown")
    assert second.first_id("c") == FIRST_ID
    first.close()
    assert second.first_id("d") == FIRST_ID + RANGE_SIZE
    second.close()


def test_there_is_a_last_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FIRST_ID + RANGES_MAX * RANGE_SIZE < 2**31
    monkeypatch.setattr(pod_users, "RANGES_MAX", 1)
    users = PodUsers(tmp_path / "lock")
    users.first_id("a")
    with pytest.raises(NoRangeError, match="all 1 ranges"):
        users.first_id("b")
    users.close()


def test_the_maps_of_a_range() -> None:
    assert id_map(5) == {"uid_map": "0 5 65536", "gid_map": "0 5 65536"}
