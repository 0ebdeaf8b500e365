"""CSIDriver (storage.k8s.io/v1).

1. Errors of `attachRequired` name the field `attachedRequired`, because kube-apiserver misspells it.
2. `preventPodSchedulingIfMissing` is behind a feature gate: the field is dropped, unless the stored driver has it.
3. The generation counts changes, but a new driver has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.tables import AGE, NAME, NONE, UNSET, Cell, KindTable, age, boolean, column
from mooring.apiserver.validation.fields import FieldError, duplicate, invalid, not_supported, required
from mooring.apiserver.validation.metadata import validate_immutable
from mooring.apiserver.validation.schema_rules import struct_rules

_SPEC = struct_rules("storage", "CSIDriverSpec")
LIFECYCLE_MODES = ("Persistent", "Ephemeral")
UPDATE_PERIOD_S_MIN = 10
TOKEN_S_MIN = 600
TOKEN_S_MAX = 2**32

_GATED = "preventPodSchedulingIfMissing"
_TOKENS_SEEN = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


# --- validation --------------------------------------------------------------------------------------------------


def validate_csi_driver(spec: Document, path: str) -> list[FieldError]:
    errors = [] if "attachRequired" in spec else [required(f"{path}.attachedRequired")]  # as kube-apiserver names it
    period_s = spec.get("nodeAllocatableUpdatePeriodSeconds")
    errors += _SPEC.validate(spec, path, "podInfoOnMount", "storageCapacity", "fsGroupPolicy")
    requests = spec.get("tokenRequests") or ()
    errors += _validate_token_requests(requests, f"{path}.tokenRequests")
    errors += [
        not_supported(f"{path}.volumeLifecycleModes", mode, LIFECYCLE_MODES)
        for mode in spec.get("volumeLifecycleModes") or ()
        if mode not in LIFECYCLE_MODES
    ]
    errors += _SPEC.validate(spec, path, "seLinuxMount")
    if period_s is not None and period_s < UPDATE_PERIOD_S_MIN:
        detail = f"must be greater than or equal to {UPDATE_PERIOD_S_MIN} seconds"
        errors.append(invalid(f"{path}.nodeAllocatableUpdatePeriodSeconds", period_s, detail))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not requests:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid(f"{path}.serviceAccountTokenInSecrets", in_secrets, detail))
    return errors


def validate_csi_driver_update(spec: Document, old: Document, path: str) -> list[FieldError]:
    """Errors of changed immutable fields."""
    errors = validate_immutable(spec.get("attachRequired"), old.get("attachRequired"), f"{path}.attachedRequired")
    return errors + _SPEC.validate_update(spec, old, path)


def _validate_token_requests(requests: Sequence[Document], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, request in enumerate(requests):
        audience, lasts_s = request.get("audience", ""), request.get("expirationSeconds")
        if audience in seen:
            errors.append(duplicate(f"{path}[{index}].audience", audience))
            continue
        seen.add(audience)
        here = f"{path}[{index}].expirationSeconds"
        if lasts_s is not None and lasts_s < TOKEN_S_MIN:
            errors.append(invalid(here, lasts_s, "may not specify a duration less than 10 minutes"))
        if lasts_s is not None and lasts_s > TOKEN_S_MAX:
            errors.append(invalid(here, lasts_s, "may not specify a duration larger than 2^32 seconds"))
    return errors


# --- table -------------------------------------------------------------------------------------------------------


def _csi_driver_cells(obj: Document, now_s: float) -> list[Cell]:
    spec = obj.get("spec") or {}
    requests = spec.get("tokenRequests")
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if requests is None else ",".join(request.get("audience", "") for request in requests),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now_s),
    ]


# --- strategy ----------------------------------------------------------------------------------------------------


class CSIDriverStrategy(Strategy):
    table = KindTable(
        (
            NAME,
            boolean("AttachRequired", "Whether volumes are attached before they are used."),
            boolean("PodInfoOnMount", "Whether it is told about the pod."),
            boolean("StorageCapacity", "Whether it says how much room is left."),
            column("TokenRequests", "For whom it wants tokens of the pod's account."),
            boolean("RequiresRepublish", "Whether it wants to be called again and again."),
            column("Modes", "The lives that its volumes may have."),
            AGE,
        ),
        _csi_driver_cells,
    )
    allows_unconditional_update = False

    def default(self, obj: Document) -> None:
        spec = obj["spec"]
        spec.setdefault("attachRequired", True)
        spec.setdefault("podInfoOnMount", False)
        spec.setdefault("storageCapacity", False)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]
        spec.setdefault("requiresRepublish", False)
        spec.setdefault("seLinuxMount", False)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["spec"].pop(_GATED, None)

    def validate_body(self, obj: Document, call: Call) -> list[FieldError]:
        return validate_csi_driver(obj["spec"], "spec")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _csi_driver_warnings(obj["spec"])

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        if _GATED not in old["spec"]:
            obj["spec"].pop(_GATED, None)
        self.count_generation(obj, old)

    def validate_body_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = validate_csi_driver(obj["spec"], "spec")
        return errors + validate_csi_driver_update(obj["spec"], old["spec"], "spec")

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        is_same = (obj["spec"].get("tokenRequests") or []) == (old["spec"].get("tokenRequests") or [])
        return [] if is_same else _csi_driver_warnings(obj["spec"])


def _csi_driver_warnings(spec: Document) -> list[str]:
    return [_TOKENS_SEEN] if spec.get("tokenRequests") and "serviceAccountTokenInSecrets" not in spec else []


STRATEGY = CSIDriverStrategy
