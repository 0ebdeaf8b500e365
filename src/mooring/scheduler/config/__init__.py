"""What the operator asked for: `KubeSchedulerConfiguration` v1, read, checked and laid out as a plan.

Comes in   the data of a configuration file (from `mooring.api.yaml`), and what the plugins can do
Goes out   `SchedulerConfiguration`, and a `ProfilePlan` for each profile

The way through the room: `load` calls `decode` (is it well-formed?), `defaults` (what goes without saying?) and
`validation` with `argument_rules` (does it make sense?); `expansion` then turns a profile into a plan, once it is
known which plugins there are. `types` and `arguments` say what can be written, in the vocabulary of `fields`.

 1. Nothing here knows a plugin: it is told, by name, which points a plugin serves.
 2. Every problem of a step is told at once, with the path of its field and in kube-scheduler v1.36's words.
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
