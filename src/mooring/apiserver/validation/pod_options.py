"""What the rules of pods tolerate because an older object already had it.

Comes in   nothing: this is a value
Goes out   to every rule of a pod's spec

 1. A new object is held to `STRICT`; `validation.pod_ratchet` loosens what the stored object already broke, so that
    nobody is locked out of his own pod by a rule that came later.
 2. What the default feature gates of v1.36 decide is not here: it is written into the rules.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PodOptions:
    """Which faults are overlooked. Everything is off for a new object."""

    is_pod: bool = False
    """The spec belongs to a pod, not to a template of one."""
    tolerates_deletion_cost: bool = False
    tolerates_affinity_selectors: bool = False
    tolerates_node_affinity_values: bool = False
    tolerates_spread_selectors: bool = False
    tolerates_spread_label_keys: bool = False
    """The old constraints broke today's rule of `matchLabelKeys`: the rule before v1.34 is used."""
    tolerates_indivisible_huge_pages: bool = False
    tolerates_token_paths: bool = False
    tolerates_host_sysctls: bool = False
    tolerates_any_selinux_change_policy: bool = False
    tolerates_init_resize_restart: bool = False
    tolerates_devices_with_user_namespaces: bool = False
    tolerates_host_network_with_user_namespaces: bool = False
    tolerates_comparing_tolerations: bool = False


STRICT = PodOptions()
STRICT_POD = PodOptions(is_pod=True)
