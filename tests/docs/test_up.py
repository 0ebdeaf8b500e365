"""docs/up.md lists every option and every limit, with its default."""

from __future__ import annotations

from dataclasses import fields

import click

from mooring.apiserver.http.request import RequestLimits
from mooring.cli.up.command import up
from mooring.controllers.settings import ControllerSettings, flag_names, settings_of_flags
from tests.docs.pages import page

GUIDE = page("docs/up.md")


def names_under(section: str) -> list[str]:
    return [row.cells[0].strip("`") for row in GUIDE.rows if row.section == section]


def test_every_option_is_explained() -> None:
    options = [max(each.opts, key=len) for each in up.params if isinstance(each, click.Option)]
    assert names_under("Options") == options


def test_every_flag_of_the_controllers_has_its_default() -> None:
    defaults = ControllerSettings()
    documented = {row.cells[0].strip("`"): row.cells[1] for row in GUIDE.rows if row.section == "Options"}
    for flag, name in flag_names().items():
        assert settings_of_flags({flag: documented[flag]}) == defaults, f"{flag} is {getattr(defaults, name)}"


def test_every_limit_is_explained() -> None:
    assert names_under("Limits") == [each.name for each in fields(RequestLimits) if each.name != "retry_after_s"]
