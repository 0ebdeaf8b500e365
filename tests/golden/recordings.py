"""Recordings: scenarios with the verdicts of the real kube-scheduler, and the comparison with ours.

Input: FAMILY.scenarios.jsonl.xz and FAMILY.verdicts.jsonl.xz of this folder. Output: pairs of scenario and verdict; the
differences between a recorded verdict and ours, as sentences.

 1. An empty list, an empty map and an absent field are equal: the recording has all three.
 2. Everything else must be equal, also the order of the reasons of a node.
 3. A recording of a binary (`mooring parity --record`) names the fields that it has. The binary nominates one of some
    equally good nodes at random: victims of the same priorities that started at the same time are as good.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

Json = dict[str, Any]

FAMILIES = (
    "fit",
    "strategy",
    "taints",
    "nodeaffinity",
    "ports",
    "spread",
    "interpod",
    "images",
    "volumes",
    "preemption",
    "gates",
    "dra",
    "mixed",
    "large",
    "handmade",
)
_FOLDER = Path(__file__).parent


def recorded(family: str, part: int = 0, parts: int = 1, folder: Path = _FOLDER) -> Iterator[tuple[Json, Json]]:
    """The scenarios of a family with their verdicts; of several parts every so many-th."""
    scenarios, verdicts = _lines(folder / f"{family}.scenarios"), _lines(folder / f"{family}.verdicts")
    assert len(scenarios) == len(verdicts), f"{family}: {len(scenarios)} scenarios, but {len(verdicts)} verdicts"
    for scenario, verdict in zip(scenarios[part::parts], verdicts[part::parts], strict=True):
        yield json.loads(scenario), json.loads(verdict)


def differences(want: Json, got: Json, scenario: Json) -> Iterator[str]:
    """What differs between a recorded verdict on a scenario and ours, pod by pod."""
    name = want["id"]
    if "results" not in want:
        if "error" not in got:
            yield f"{name}: accepted, although kube-scheduler could not read it: {want['error']}"
        return
    ours = got.get("results", [])
    for place, result in enumerate(want["results"]):
        if place >= len(ours):
            yield f"{name} {result['pod']}: no verdict; {got.get('error', 'the results end before it')}"
            continue
        for difference in _of_result(result, ours[place], scenario):
            yield f"{name} {result['pod']}: {difference}"


_FIELDS = ("pod", "error", "prefilter", "chosen", "message", "preemption", "nodes", "scores")


def _of_result(want: Json, got: Json, scenario: Json) -> Iterator[str]:
    fields = want.get("recorded") or _FIELDS
    for field in fields:
        if field in ("nodes", "scores"):
            yield from _by_node(field, want.get(field) or {}, got.get(field) or {})
        elif (want.get(field) or None) != (got.get(field) or None):
            is_as_good = field == "preemption" and "recorded" in want and _are_as_good(scenario, want, got)
            if not is_as_good:
                yield f"{field}: want {want.get(field)!r}, got {got.get(field)!r}"


def _are_as_good(scenario: Json, want: Json, got: Json) -> bool:
    if not want["preemption"] or not got["preemption"]:
        return False
    pods = {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}": each
        for each in scenario["objects"]
        if each["kind"] == "Pod"
    }
    ranks = [
        sorted(
            (pods[key]["spec"].get("priority", 0), (pods[key].get("status") or {}).get("startTime", ""))
            for key in choice["preemption"]["victims"]
        )
        for choice in (want, got)
    ]
    return ranks[0] == ranks[1]


def _by_node(field: str, want: Mapping[str, Json], got: Mapping[str, Json]) -> Iterator[str]:
    for node in want.keys() | got.keys():
        if want.get(node) != got.get(node):
            yield f"{field} of {node}: want {want.get(node)}, got {got.get(node)}"


@cache
def _lines(path: Path) -> tuple[bytes, ...]:
    return tuple(lzma.decompress(Path(f"{path}.jsonl.xz").read_bytes()).splitlines())
