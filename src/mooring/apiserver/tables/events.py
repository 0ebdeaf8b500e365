"""Events in a table.

1. Both forms of an event are printed alike: the served form is turned into the stored one first.
2. A series knows better when it was last seen, and how often.
"""

from __future__ import annotations

from mooring.api import kinds
from mooring.apiserver.kinds.event import CORE_EVENT_TABLE, EVENT_TABLE

TABLES = {
    kinds.CORE_EVENT: CORE_EVENT_TABLE,
    kinds.EVENT: EVENT_TABLE,
}
