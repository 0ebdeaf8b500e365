"""The catalogue: every plugin that kube-scheduler v1.36 enables by default is there, once, and a few beside them."""

from __future__ import annotations

from mooring.scheduler.config import expand_profiles, load_configuration
from mooring.scheduler.config.policy_names import STRATEGY_PLUGINS
from mooring.scheduler.plugins.catalogue import PLUGINS, default_registry

OF_OLD_POLICIES = {"NodeLabel", "ServiceAffinity", "SelectorSpread", *STRATEGY_PLUGINS.values()}
"""kube-scheduler dropped them with Policy or after it; here they can be enabled by name."""


def test_names_are_unique() -> None:
    names = [plugin.name for plugin in PLUGINS]
    assert sorted(set(names)) == sorted(names)


def test_the_default_profile_uses_all_but_those_of_old_policies() -> None:
    plans = expand_profiles(load_configuration(None), default_registry().implements)
    used = {use.name for uses in plans["default-scheduler"].at.values() for use in uses}
    assert used == {plugin.name for plugin in PLUGINS} - OF_OLD_POLICIES
