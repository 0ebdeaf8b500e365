"""The catalogue has every plugin of kube-scheduler v1.36, and those of the older Policy."""

from __future__ import annotations

from mooring.scheduler.catalogue import BUILT_IN, PLUGINS, default_registry
from mooring.scheduler.config import expand_profiles, load_configuration
from mooring.scheduler.config.profiles import DEFAULT_PLUGINS
from mooring.scheduler.policy.types import STRATEGY_PLUGINS

OF_OLD_POLICIES = {"NodeLabel", "ServiceAffinity", "SelectorSpread", *STRATEGY_PLUGINS.values()}
"""kube-scheduler dropped these plugins with Policy or later. A configuration can enable them by name."""


def test_names_are_unique() -> None:
    names = [plugin.name for plugin in BUILT_IN]
    assert sorted(set(names)) == sorted(names)


def test_the_default_profile_uses_none_of_those_of_old_policies() -> None:
    plans = expand_profiles(load_configuration(None), default_registry().implements)
    used = {use.name for uses in plans["default-scheduler"].at.values() for use in uses}
    assert used == {entry.name for entry in DEFAULT_PLUGINS}
    assert used <= {plugin.name for plugin in PLUGINS} == {plugin.name for plugin in BUILT_IN} - OF_OLD_POLICIES
