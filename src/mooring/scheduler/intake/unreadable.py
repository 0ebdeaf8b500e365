"""Objects that break a rule of the API deep inside: a quantity or a time that is none.

An API server refuses them, but not every store has one in front of it. What cannot be read is left out and logged: one
broken object must not blind us to the others, still less end the scheduler.
"""

from __future__ import annotations

import logging

from mooring.api.errors import ObjectError
from mooring.api.views.meta import ApiObject
from mooring.kit.clock import TimestampError

logger = logging.getLogger(__name__)

UNREADABLE = (ObjectError, TimestampError)


def leave_out(view: ApiObject, error: Exception) -> None:
    logger.error("%s %s is left out because it cannot be read: %s", view.kind, view.key, error)
