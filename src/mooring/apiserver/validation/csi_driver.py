"""What is wrong with a CSIDriver.

Comes in   a defaulted CSIDriver, and what it was
Goes out   faults

 1. Faults of `attachRequired` are told of `attachedRequired`, as kube-apiserver misspells it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.validation.fields import Fault, duplicate, invalid, not_supported, required
from mooring.apiserver.validation.metadata import immutable_faults

GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
LIFECYCLE_MODES = ("Persistent", "Ephemeral")
UPDATE_PERIOD_S_MIN = 10
TOKEN_S_MIN = 600
TOKEN_S_MAX = 2**32


def csi_driver_faults(spec: Document, path: str) -> list[Fault]:
    faults = [
        required(f"{path}.{told}")
        for field, told in (
            ("attachRequired", "attachedRequired"),
            ("podInfoOnMount", "podInfoOnMount"),
            ("storageCapacity", "storageCapacity"),
        )
        if field not in spec
    ]
    policy, period_s = spec.get("fsGroupPolicy"), spec.get("nodeAllocatableUpdatePeriodSeconds")
    if policy is not None and policy not in GROUP_POLICIES:
        faults.append(not_supported(f"{path}.fsGroupPolicy", policy, GROUP_POLICIES))
    requests = spec.get("tokenRequests") or ()
    faults += _token_requests_faults(requests, f"{path}.tokenRequests")
    faults += [
        not_supported(f"{path}.volumeLifecycleModes", mode, LIFECYCLE_MODES)
        for mode in spec.get("volumeLifecycleModes") or ()
        if mode not in LIFECYCLE_MODES
    ]
    if "seLinuxMount" not in spec:
        faults.append(required(f"{path}.seLinuxMount"))
    if period_s is not None and period_s < UPDATE_PERIOD_S_MIN:
        detail = f"must be greater than or equal to {UPDATE_PERIOD_S_MIN} seconds"
        faults.append(invalid(f"{path}.nodeAllocatableUpdatePeriodSeconds", period_s, detail))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not requests:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        faults.append(invalid(f"{path}.serviceAccountTokenInSecrets", in_secrets, detail))
    return faults


def csi_driver_update_faults(spec: Document, old: Document, path: str) -> list[Fault]:
    """What a change may not touch."""
    faults = immutable_faults(spec.get("attachRequired"), old.get("attachRequired"), f"{path}.attachedRequired")
    modes, old_modes = spec.get("volumeLifecycleModes"), old.get("volumeLifecycleModes")
    return faults + immutable_faults(modes, old_modes, f"{path}.volumeLifecycleModes")


def _token_requests_faults(requests: Sequence[Document], path: str) -> list[Fault]:
    faults: list[Fault] = []
    seen: set[str] = set()
    for index, request in enumerate(requests):
        audience, lasts_s = request.get("audience", ""), request.get("expirationSeconds")
        if audience in seen:
            faults.append(duplicate(f"{path}[{index}].audience", audience))
            continue
        seen.add(audience)
        here = f"{path}[{index}].expirationSeconds"
        if lasts_s is not None and lasts_s < TOKEN_S_MIN:
            faults.append(invalid(here, lasts_s, "may not specify a duration less than 10 minutes"))
        if lasts_s is not None and lasts_s > TOKEN_S_MAX:
            faults.append(invalid(here, lasts_s, "may not specify a duration larger than 2^32 seconds"))
    return faults
