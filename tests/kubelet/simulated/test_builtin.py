"""The lives, played: what `golden/*.yaml` says is what is seen, line by line.

Each file has a pod (as YAML), perhaps lives of its own, and the timeline that they give with seed 1: when the status
changed, and to what. A line is the time in seconds, the phase, whether it is ready, and each container's state; `*2`
is a container's number of restarts.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mooring.kubelet.settings import FleetSettings
from mooring.kubelet.simulated.builtin import BUILTIN_LIVES
from mooring.kubelet.simulated.stage_file import read_lives
from mooring.kubelet.simulated.stages import stage_duration_s
from tests.kubelet.play import Body, Play, played

FILES = sorted((Path(__file__).parent / "golden").glob("*.yaml"))


def timeline_of(golden: Body) -> list[str]:
    lines: list[str] = []

    async def story(play: Play) -> None:
        await play.create(golden["pod"])
        lines.extend(await play.timeline(golden["pod"]["metadata"]["name"], stage_duration_s(golden["until"])))

    lives = yaml.safe_dump({"lives": golden["lives"]}) if "lives" in golden else ""
    played(story, FleetSettings(count=1, lives=lives))
    return lines


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
def test_a_life_is_as_it_was_written_down(path: Path) -> None:
    golden: Body = yaml.safe_load(path.read_text())
    assert timeline_of(golden) == golden["timeline"]


def test_every_life_that_is_built_in_has_been_written_down() -> None:
    names = {life.name for life in read_lives(BUILTIN_LIVES)}
    assert names <= {path.stem for path in FILES}
