"""Interned taint sets."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from mooring.scheduler.cache.taints import TaintColumns
from tests.api.builders import taint

GPU, OLD = taint("gpu=true:NoSchedule"), taint("old:NoExecute")


def test_rows_with_the_same_taints_share_a_set() -> None:
    taints = TaintColumns(8)
    taints.set(0, [GPU, OLD])
    taints.set(1, [replace(GPU, time_added="2024-01-01T00:00:00Z"), OLD])
    taints.set(2, [OLD])
    assert taints.set_of_row[0] == taints.set_of_row[1] != taints.set_of_row[2]
    assert taints.sets[taints.set_of_row[2]] == (OLD,)


def test_the_order_of_taints_makes_a_difference() -> None:
    taints = TaintColumns(8)
    taints.set(0, [GPU, OLD])
    taints.set(1, [OLD, GPU])
    assert taints.set_of_row[0] != taints.set_of_row[1], "the first untolerated taint is the one that is told"


def test_no_taints_are_set_zero() -> None:
    taints = TaintColumns(8)
    taints.set(0, [GPU])
    taints.set(0, [])
    taints.set(1, [GPU])
    taints.clear(1)
    assert taints.set_of_row[:3].tolist() == [0, 0, 0]


def test_each_distinct_set_is_judged_once() -> None:
    taints = TaintColumns(8)
    for row in range(6):
        taints.set(row, [GPU] if row % 2 else [])
    judged = []

    def count(found: tuple[object, ...]) -> int:
        judged.append(found)
        return len(found)

    verdicts = taints.judge(count, np.int64)
    assert verdicts[taints.set_of_row[:6]].tolist() == [0, 1, 0, 1, 0, 1]
    assert judged == [(), (GPU,)]
