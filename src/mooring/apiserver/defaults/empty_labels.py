"""Empty labels that somebody wrote down: Go tells them from none, and so do a few answers of kube-apiserver.

Comes in   the template of pods, as the wire has read it
Goes out   the same without empty labels, but remembering them

 1. A job whose template says `labels: {}` shares that map with it, so that the labels which the server adds to the
    pods appear on the job before it is validated; and a fault prints `{}` instead of `null`.
 2. The empty map itself is gone: nobody manages it and nobody stores it. What remembers it is the type of the
    template's metadata, which lasts as long as the request.
"""

from __future__ import annotations

from typing import Any

from mooring.api.document import Document


class WithEmptyLabels(dict[str, Any]):
    """Metadata to which empty labels were given."""


def note_empty_labels(template: Document) -> None:
    """Take out empty labels, and remember that they were there."""
    metadata = template.get("metadata")
    if metadata is not None and metadata.get("labels") == {}:
        template["metadata"] = WithEmptyLabels({name: value for name, value in metadata.items() if name != "labels"})
