"""CSIDrivers.

1. Scaling with volume limits waits behind a feature gate: its field is dropped, unless the driver already has it.
2. The generation counts changes, but a new driver has none.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.storage import default_csi_driver
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.csi_driver import csi_driver_faults, csi_driver_update_faults
from mooring.apiserver.validation.fields import Fault

_GATED = "preventPodSchedulingIfMissing"
_TOKENS_SEEN = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


class CSIDriverStrategy(Strategy):
    allows_unconditional_update = False

    def default(self, obj: Document) -> None:
        default_csi_driver(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["spec"].pop(_GATED, None)

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return csi_driver_faults(obj["spec"], "spec")

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _warnings(obj["spec"])

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        if _GATED not in old["spec"]:
            obj["spec"].pop(_GATED, None)
        self.count_generation(obj, old)

    def body_update_faults(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        faults = csi_driver_faults(obj["spec"], "spec")
        return faults + csi_driver_update_faults(obj["spec"], old["spec"], "spec")

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        is_same = (obj["spec"].get("tokenRequests") or []) == (old["spec"].get("tokenRequests") or [])
        return [] if is_same else _warnings(obj["spec"])


def _warnings(spec: Document) -> list[str]:
    return [_TOKENS_SEEN] if spec.get("tokenRequests") and "serviceAccountTokenInSecrets" not in spec else []
