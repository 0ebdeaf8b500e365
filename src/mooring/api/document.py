"""Documents: whole API objects as plain JSON, the form in which the API server handles them.

A document loses no field that we do not know. Only the API server and the codecs touch documents; everybody else reads
the views of `mooring.api.views`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]
