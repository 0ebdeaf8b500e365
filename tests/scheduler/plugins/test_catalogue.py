"""The catalogue: every plugin that kube-scheduler v1.36 enables by default is there, once."""

from __future__ import annotations

from mooring.scheduler.config import expand_profiles, load_configuration
from mooring.scheduler.plugins.catalogue import PLUGINS, default_registry


def test_names_are_unique() -> None:
    names = [plugin.name for plugin in PLUGINS]
    assert sorted(set(names)) == sorted(names)


def test_the_default_profile_uses_all_of_them() -> None:
    plans = expand_profiles(load_configuration(None), default_registry().implements)
    used = {use.name for uses in plans["default-scheduler"].at.values() for use in uses}
    assert used == {plugin.name for plugin in PLUGINS}
