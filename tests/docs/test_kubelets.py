"""The page about kubelets names every life and every field, and its example loads."""

from __future__ import annotations

import re

from mooring.kubelet.simulated.stage_file import BUILTIN_LIVES, STAGE_FIELDS, read_lives
from tests.docs.pages import page

PAGE = page("docs/kubelets.md")


def test_every_built_in_life_is_on_the_page() -> None:
    table = PAGE.text.partition("| built-in life |")[2].partition("\n\n")[0]
    told = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
    assert sorted(told) == sorted(life.name for life in read_lives(BUILTIN_LIVES))


def test_every_field_of_a_stage_is_on_the_page() -> None:
    table = PAGE.text.partition("| field of a stage |")[2].partition("\n\n")[0]
    told = [name for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(told) == sorted(STAGE_FIELDS)


def test_the_example_loads() -> None:
    example = PAGE.text.partition("```yaml\n")[2].partition("```")[0]
    (life,) = read_lives(example)
    assert [*life.stages] == ["creating", "warming", "serving", "crashed"]
