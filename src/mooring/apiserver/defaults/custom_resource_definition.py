"""What a definition means where it says nothing."""

from __future__ import annotations

from mooring.api.document import Document

WEBHOOK_PORT = 443


def default_definition(definition: Document) -> None:
    """Fill in the names that follow from others, and that nothing is converted."""
    spec = definition["spec"]
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
    status = definition.setdefault("status", {})
    if not status.get("storedVersions"):
        stored = next((each["name"] for each in spec.get("versions") or () if each.get("storage")), None)
        if stored is not None:
            status["storedVersions"] = [stored]
