from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from mooring.scheduler.framework import sources
from mooring.scheduler.framework.loading import PluginFileError
from mooring.scheduler.framework.sources import installed_plugins, plugins_from

RULE = """
from mooring.scheduler.framework.node_plugins import FilterPlugin

class QuietHours(FilterPlugin):
    name = "QuietHours"
    def filter(self, pod, node_info):
        return None

NOT_A_PLUGIN = 42
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that can be imported."""
    (tmp_path / "acme_rules").mkdir()
    (tmp_path / "acme_rules" / "__init__.py").write_text("")
    (tmp_path / "acme_rules" / "placement.py").write_text(RULE)
    (tmp_path / "acme_rules" / "broken.py").write_text("import no_such_library")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("acme_rules")]:
        del sys.modules[name]


def test_a_class_is_named_by_its_module(package: Path) -> None:
    (plugin,) = plugins_from("acme_rules.placement:QuietHours")
    assert plugin.name == "QuietHours"


def test_a_file_is_named_by_its_path(package: Path) -> None:
    (plugin,) = plugins_from(str(package / "acme_rules" / "placement.py"))
    assert plugin.name == "QuietHours"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("acme_rules.placement:Missing", "acme_rules.placement:Missing: acme_rules.placement has no Missing"),
        ("acme_rules.nowhere:Rule", "acme_rules.nowhere cannot be imported: ModuleNotFoundError"),
        ("acme_rules.broken:Rule", "No module named 'no_such_library'"),
        ("acme_rules.placement:NOT_A_PLUGIN", "is 42, wanted a class that inherits from FilterPlugin, ScorePlugin, …"),
        ("no-such-file.py", "no-such-file.py: there is no such file"),
    ],
)
def test_what_cannot_be_had_is_told(package: Path, source: str, text: str) -> None:
    with pytest.raises(PluginFileError) as raised:
        plugins_from(source)
    assert text in str(raised.value)


def test_installed_packages_offer_plugins(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, "acme_rules.placement:QuietHours")
    assert [plugin.name for plugin in installed_plugins()] == ["QuietHours"]


def test_an_entry_point_that_cannot_be_imported_is_named(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, "acme_rules.broken:Rule")
    with pytest.raises(PluginFileError, match=r"entry point quiet of some package \(acme_rules.broken:Rule\)"):
        installed_plugins()


def offered(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    points = EntryPoints([EntryPoint("quiet", value, sources.ENTRY_POINT_GROUP)])
    monkeypatch.setattr(sources, "entry_points", lambda group: points.select(group=group))
