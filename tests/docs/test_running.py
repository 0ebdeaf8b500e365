"""docs/up.md, docs/kubelets.md and docs/running.md list every option and limit, with its default."""

from __future__ import annotations

import re
from dataclasses import fields

import click
import pytest
import yaml

from mooring.apiserver.http.request import RequestLimits
from mooring.cli.flags import parse_value
from mooring.cli.scheduler.command import FLAGS, OWN_SECTION, all_flags
from mooring.cli.up.command import controller_flags, up
from mooring.cluster.scheduler_pages import LISTED
from mooring.controllers.settings import KUBERNETES_DEFAULTS
from mooring.kubelet.node_templates import TEMPLATE_FIELDS, load_node_templates
from mooring.kubelet.simulated.stage_file import BUILTIN_STAGE_SETS, STAGE_FIELDS, read_stage_sets
from mooring.scheduler.config.load import load_configuration
from tests.docs.pages import ROOT, page

GUIDE = page("docs/up.md")


def names_under(section: str) -> list[str]:
    return [row.cells[0].strip("`") for row in GUIDE.rows if row.section == section]


def test_every_option_is_explained() -> None:
    options = [max(param.opts, key=len) for param in up.params if isinstance(param, click.Option)]
    assert names_under("Options") == options


def test_every_flag_of_the_controllers_has_its_default() -> None:
    documented = {row.cells[0].strip("`"): row.cells[1] for row in GUIDE.rows if row.section == "Options"}
    for flag in controller_flags(KUBERNETES_DEFAULTS):
        assert parse_value(flag.flag_type, documented[f"--{flag.name}"]) == flag.default, flag


def test_every_limit_is_explained() -> None:
    assert names_under("Limits") == [field.name for field in fields(RequestLimits) if field.name != "retry_after_s"]


# --- The page about kubelets names every stage set and every field, and its example loads ----------------------------


PAGE = page("docs/kubelets.md")


def test_every_built_in_stage_set_is_on_the_page() -> None:
    table = PAGE.text.partition("| built-in stage set |")[2].partition("\n\n")[0]
    told = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
    assert sorted(told) == sorted(read_stage_set.name for read_stage_set in read_stage_sets(BUILTIN_STAGE_SETS))


def test_every_field_of_a_stage_is_on_the_page() -> None:
    table = PAGE.text.partition("| field of a stage |")[2].partition("\n\n")[0]
    told = [name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(told) == sorted(STAGE_FIELDS)


def test_every_field_of_a_node_template_is_on_the_page() -> None:
    table = PAGE.text.partition("| field of a template |")[2].partition("\n\n")[0]
    told = [name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(told) == sorted(TEMPLATE_FIELDS)


def example_of(section: str) -> str:
    return PAGE.text.partition(f"### {section}\n")[2].partition("```yaml\n")[2].partition("```")[0]


def test_the_examples_load() -> None:
    (template,) = load_node_templates(example_of("Node templates"), "docs/kubelets.md")
    assert (template.name, template.devices[0].count) == ("gpu", 8)
    (stage_set,) = read_stage_sets(example_of("Stages"))
    assert [*stage_set.stages] == ["creating", "warming", "serving", "crashed"]


# --- docs/running.md: the flags, endpoints and files that it names exist ---------------------------------------------


RUNNING_PAGE = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
SOURCE = (ROOT / "src" / "mooring" / "cluster" / "scheduler_pages.py").read_text(encoding="utf-8")


def test_every_flag_that_is_named_exists() -> None:
    known = {f"--{flag.name}" for flag in all_flags()} | {"--config", "--help"}
    for named in re.findall(r"`(--[a-z0-9-]+)`", RUNNING_PAGE):
        assert named in known, named


def test_flags_of_our_own_are_explained() -> None:
    for flag in FLAGS[OWN_SECTION]:
        assert f"`--{flag.name}`" in RUNNING_PAGE


@pytest.mark.parametrize("flag", [flag for flag in all_flags() if not flag.has_effect], ids=lambda flag: flag.name)
def test_flags_without_effect_are_listed(flag: object) -> None:
    name = getattr(flag, "name", "")
    covered = f"`--{name}`" in RUNNING_PAGE or "http2" in name or "buffer" in name or "split" in name
    assert covered, name


def test_every_endpoint_is_listed() -> None:
    for path in LISTED:
        assert f"`{path}`" in RUNNING_PAGE, path
    for path in re.findall(r'"(/debug/(?!pprof)[a-z/]+)"', SOURCE):
        assert f"`{path}`" in RUNNING_PAGE, path


def test_the_example_configuration_loads() -> None:
    (example,) = re.findall(r"```yaml\n(.+?)```", RUNNING_PAGE, re.DOTALL)
    assert load_configuration(yaml.safe_load(example)).profiles[0].scheduler_name == "trial"
