"""CustomResourceDefinition (apiextensions.k8s.io/v1): defaults and strategy.

The strategy imports the validation when a client writes a definition, because it imports CEL: the server is ready a
tenth of a second earlier.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.kinds.custom_resource_definition.definition import validate_names
from mooring.apiserver.strategy import StatusStrategy, Strategy, keep
from mooring.apiserver.validation.fields import FieldError
from mooring.apiserver.validation.metadata import validate_object_meta, validate_object_meta_update

WEBHOOK_PORT = 443

_EMPTY_STATUS = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}


class DefinitionStatusStrategy(StatusStrategy):
    """Writing the status of a definition. Its metadata can be written too, as in kube-apiserver."""

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        errors = validate_object_meta_update(obj["metadata"], old["metadata"], "metadata")
        return errors + validate_names(obj["status"].get("acceptedNames") or {}, "status.acceptedNames")


class CustomResourceDefinitionStrategy(Strategy):
    """Writing definitions. `custom.definition_controller` decides afterwards whether their names are accepted."""

    allows_unconditional_update = False
    is_costly = True
    validates_finalizer_names = False

    status_strategy = DefinitionStatusStrategy

    def default(self, obj: Document) -> None:
        """Set names that follow from others, and the conversion strategy None."""
        spec = obj["spec"]
        names = spec.get("names") or {}
        kind = names.get("kind", "")
        if not names.get("singular") and kind:
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        if spec.get("conversion") is None:
            spec["conversion"] = {"strategy": "None"}
        service = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None and service.get("port") is None:
            service["port"] = WEBHOOK_PORT
        status = obj.setdefault("status", {})
        if not status.get("storedVersions"):
            stored = next((version["name"] for version in spec.get("versions") or () if version.get("storage")), None)
            if stored is not None:
                status["storedVersions"] = [stored]

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        obj["status"] = {**_EMPTY_STATUS, "acceptedNames": {"plural": "", "kind": ""}}
        obj["metadata"]["generation"] = 1
        _note_stored_version(obj)

    def validate(self, obj: Document, call: Call) -> list[FieldError]:
        from mooring.apiserver.kinds.custom_resource_definition.definition import name_errors, validate_definition

        errors = validate_object_meta(obj["metadata"], False, name_errors(obj), "metadata")
        return errors + validate_definition(obj)

    def warnings_on_create(self, obj: Document, call: Call) -> list[str]:
        return _format_warnings(_unrecognized_formats(obj))

    def prepare_for_update(self, obj: Document, old: Document, call: Call) -> None:
        keep(obj, old, "status")
        self.count_generation(obj, old)
        _note_stored_version(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[FieldError]:
        from mooring.apiserver.kinds.custom_resource_definition.definition import validate_definition_update

        errors = validate_object_meta_update(obj["metadata"], old["metadata"], "metadata")
        return errors + validate_definition_update(obj, old)

    def warnings_on_update(self, obj: Document, old: Document, call: Call) -> list[str]:
        known = _unrecognized_formats(old)
        return _format_warnings([name for name in _unrecognized_formats(obj) if name not in known])


def _note_stored_version(obj: Document) -> None:
    """`storedVersions` keeps a version until all its objects are migrated."""
    stored = next((version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")), None)
    known: list[str] = obj["status"].get("storedVersions") or []
    if stored is not None and stored not in known:
        obj["status"] = {**obj["status"], "storedVersions": [*known, stored]}


def _unrecognized_formats(obj: Document) -> list[str]:
    from mooring.apiserver.kinds.custom_resource_definition.definition import unrecognized_formats

    return unrecognized_formats(obj)


def _format_warnings(names: list[str]) -> list[str]:
    return [f'unrecognized format "{name}"' for name in names]


STRATEGY = CustomResourceDefinitionStrategy
