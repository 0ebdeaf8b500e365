"""The page about kubelets names every stage set and every field, and its example loads."""

from __future__ import annotations

import re

from mooring.kubelet.node_templates import TEMPLATE_FIELDS, load_node_templates
from mooring.kubelet.simulated.stage_file import BUILTIN_STAGE_SETS, STAGE_FIELDS, read_stage_sets
from tests.docs.pages import page

PAGE = page("docs/kubelets.md")


def test_every_built_in_stage_set_is_on_the_page() -> None:
    table = PAGE.text.partition("| built-in stage set |")[2].partition("\n\n")[0]
    told = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
    assert sorted(told) == sorted(each.name for each in read_stage_sets(BUILTIN_STAGE_SETS))


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
