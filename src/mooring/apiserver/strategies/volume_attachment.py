"""VolumeAttachments."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.storage import default_volume_attachment
from mooring.apiserver.strategies.status_metadata import keep_metadata
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.volume_attachment import volume_attachment_faults, volume_attachment_update_faults


class VolumeAttachmentStrategy(Strategy):
    allows_unconditional_update = False

    @property
    def subresources(self) -> Mapping[str, Strategy]:
        return {"status": VolumeAttachmentStatusStrategy(self.kind, self)}

    def default(self, obj: Document) -> None:
        default_volume_attachment(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {"attached": False}

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return volume_attachment_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        """As a new attachment, then as a change."""
        faults = self.meta_faults(obj)
        faults += volume_attachment_faults(obj)
        return faults + volume_attachment_update_faults(obj, old)


class VolumeAttachmentStatusStrategy(StatusStrategy):
    """Writing what became of it; judged like any other write."""

    reset_fields = (("metadata",), ("spec",))

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "spec")
        keep_metadata(obj, old)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return self.main.validate_update(obj, old, call)
