"""The scheduler's configuration: `KubeSchedulerConfiguration` v1, decoded, completed, validated and expanded.

Reading order: `types` (what can be written, and problems), `load` (from the data of a file and back), `profiles`
(default plugins; a profile's plan), `validation`.

1. This package imports no plugin class. A function tells which extension points a named plugin serves.
2. Each step reports all of its problems at once, with the path of the field and kube-scheduler v1.36's message.
"""

from mooring.scheduler.config.load import load_configuration
from mooring.scheduler.config.profiles import (
    Implements,
    PluginUse,
    ProfilePlan,
    default_profile,
    expand_profile,
    expand_profiles,
)
from mooring.scheduler.config.types import (
    ConfigProblem,
    ConfigurationError,
    KubeSchedulerProfile,
    SchedulerConfiguration,
)

__all__ = [
    "ConfigProblem",
    "ConfigurationError",
    "Implements",
    "KubeSchedulerProfile",
    "PluginUse",
    "ProfilePlan",
    "SchedulerConfiguration",
    "default_profile",
    "expand_profile",
    "expand_profiles",
    "load_configuration",
]
