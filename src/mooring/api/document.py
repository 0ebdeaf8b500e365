"""Documents: whole API objects as plain JSON, the form in which the API server handles them.

A document keeps the fields that this version does not know. Only the API server and the codecs use documents; other
components read the views of `mooring.api.views`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]
