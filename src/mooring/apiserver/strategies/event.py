"""Events: one kind of object under two APIs.

Comes in   an event in the form of either API
Goes out   the same, judged by the rules of that API

 1. Both kinds have this strategy. Events are judged in core's form (`mooring.api.event_forms`), in which they are also
    stored, and its names are those in the faults.
 2. Through core an update may change anything, its own rules kept; through events.k8s.io only the series.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.api.event_forms import served_field, stored_form
from mooring.api.kinds import CORE_EVENT
from mooring.apiserver.call import Call
from mooring.apiserver.strategy import Dependents, Strategy
from mooring.apiserver.validation.event import event_faults, event_update_faults, strict_event_faults
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.metadata import object_meta_faults, object_meta_update_faults

_SELECTABLE_REFERENCE_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


class EventStrategy(Strategy):
    """Writing an event."""

    allows_create_on_update = True
    dependents = Dependents.UNSUPPORTED
    validates_metadata = False

    def validate(self, obj: Document, call: Call) -> list[Fault]:
        event = _core_form(obj)
        faults = event_faults(event, self.kind)
        if self.kind is CORE_EVENT:
            return faults
        faults += object_meta_faults(obj["metadata"], True, self.name_faults, "metadata")
        return faults + strict_event_faults(event)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        event = _core_form(obj)
        faults = event_faults(event, self.kind)
        if self.kind is CORE_EVENT:
            return faults
        faults += object_meta_update_faults(obj["metadata"], old["metadata"], "metadata")
        return faults + event_update_faults(event, _core_form(old))

    def selectable_fields(self, obj: Document) -> dict[str, str]:
        event = _core_form(obj)
        regarded = event["involvedObject"]
        component = event.get("reportingComponent", "")
        fields = {f"involvedObject.{field}": regarded.get(field, "") for field in _SELECTABLE_REFERENCE_FIELDS}
        fields["reason"] = event.get("reason", "")
        fields["reportingComponent"] = component
        fields["type"] = event.get("type", "")
        if self.kind is not CORE_EVENT:
            return {served_field(field): value for field, value in fields.items()}
        fields["source"] = (event.get("source") or {}).get("component") or component
        return fields


def _core_form(event: Document) -> Document:
    return event if "involvedObject" in event else stored_form(event)
