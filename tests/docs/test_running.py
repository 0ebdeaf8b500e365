"""docs/running.md: the flags, endpoints and files that it names exist."""

from __future__ import annotations

import re

import pytest
import yaml

from mooring.cli.scheduler.flags import FLAGS, all_flags
from mooring.cluster.scheduler_pages import LISTED
from mooring.scheduler.config.load import load_configuration
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
SOURCE = (ROOT / "src" / "mooring" / "cluster" / "scheduler_pages.py").read_text(encoding="utf-8")


def test_every_flag_that_is_named_exists() -> None:
    known = {f"--{flag.name}" for flag in all_flags()} | {"--config", "--help"}
    for named in re.findall(r"`(--[a-z0-9-]+)`", PAGE):
        assert named in known, named


def test_flags_of_our_own_are_explained() -> None:
    for flag in FLAGS["mooring"]:
        assert f"`--{flag.name}`" in PAGE


@pytest.mark.parametrize("flag", [flag for flag in all_flags() if not flag.has_effect], ids=lambda flag: flag.name)
def test_flags_without_effect_are_listed(flag: object) -> None:
    name = getattr(flag, "name", "")
    covered = f"`--{name}`" in PAGE or "http2" in name or "buffer" in name or "split" in name
    assert covered, name


def test_every_endpoint_is_listed() -> None:
    for path in LISTED:
        assert f"`{path}`" in PAGE, path
    for path in re.findall(r'"(/debug/(?!pprof)[a-z/]+)"', SOURCE):
        assert f"`{path}`" in PAGE, path


def test_the_example_configuration_loads() -> None:
    (example,) = re.findall(r"```yaml\n(.+?)```", PAGE, re.DOTALL)
    assert load_configuration(yaml.safe_load(example)).profiles[0].scheduler_name == "trial"
