"""KubeSchedulerConfiguration v1: decoded, validated and expanded to a plan for each profile.

Input: the data of a configuration file (from `mooring.api.yaml`), and which extension points each plugin implements.
Output: `SchedulerConfiguration`, and a `ProfilePlan` for each profile.

`load` calls `decode`, `defaults` and `validation` with `argument_rules`. `expansion` turns a profile into a plan.
`types` and `arguments` define what can be written, with the field types of `fields`.

1. This package knows no plugin.
2. Every step reports all problems at once, each with the path of its field and in the words of kube-scheduler v1.36.
"""

from mooring.scheduler.config.defaults import default_profile
from mooring.scheduler.config.expansion import (
    Implements,
    PluginUse,
    ProfilePlan,
    expand_profile,
    expand_profiles,
)
from mooring.scheduler.config.load import load_configuration
from mooring.scheduler.config.problems import ConfigurationError, Problem
from mooring.scheduler.config.types import Profile, SchedulerConfiguration

__all__ = [
    "ConfigurationError",
    "Implements",
    "PluginUse",
    "Problem",
    "Profile",
    "ProfilePlan",
    "SchedulerConfiguration",
    "default_profile",
    "expand_profile",
    "expand_profiles",
    "load_configuration",
]
