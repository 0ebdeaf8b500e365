"""What lies in `deploy/`, read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(*parts: str) -> list[dict[str, Any]]:
    """All objects of a file."""
    text = DEPLOY.joinpath(*parts).read_text(encoding="utf-8")
    return [document for document in yaml.safe_load_all(text) if document]


def installed() -> list[dict[str, Any]]:
    """All objects that the kustomization puts together."""
    (kustomization,) = documents("scheduler", "kustomization.yaml")
    return [document for name in kustomization["resources"] for document in documents("scheduler", name)]


def one(kind: str, name: str = "mooring-scheduler") -> dict[str, Any]:
    """The object of that kind and name."""
    (found,) = (each for each in installed() if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def rights(role: dict[str, Any]) -> set[tuple[str, str]]:
    """What a role allows: pairs of a resource (with its group) and a verb."""
    return {
        (f"{resource}.{group}" if group else resource, verb)
        for rule in role["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }
