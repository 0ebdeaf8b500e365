"""Limit ranges: the bounds that admission keeps in a namespace.

1. An update is judged like a creation, and by nothing else.
2. A limit range may come without a name and gets one that nobody else has, made from its uid.
"""

from __future__ import annotations

from mooring.api.document import Document
from mooring.apiserver.call import Call
from mooring.apiserver.defaults.limit_range import default_limit_range
from mooring.apiserver.strategy import Strategy
from mooring.apiserver.validation.fields import Fault
from mooring.apiserver.validation.limit_range import limit_range_faults


class LimitRangeStrategy(Strategy):
    """Writing a limit range."""

    allows_create_on_update = True

    def default(self, obj: Document) -> None:
        default_limit_range(obj)

    def prepare_for_create(self, obj: Document, call: Call) -> None:
        metadata = obj["metadata"]
        if not metadata.get("name"):
            metadata["name"] = _name_from_uid(metadata["uid"])

    def body_faults(self, obj: Document, call: Call) -> list[Fault]:
        return limit_range_faults(obj)

    def validate_update(self, obj: Document, old: Document, call: Call) -> list[Fault]:
        return self.validate(obj, call)


def _name_from_uid(uid: str) -> str:
    """Another uuid of version 4: the digits of the first one, backwards where they are chance."""
    digits = uid.replace("-", "")
    chance = (digits[:12] + digits[13:16] + digits[17:])[::-1]
    return f"{chance[:8]}-{chance[8:12]}-4{chance[12:15]}-{digits[16]}{chance[15:18]}-{chance[18:]}"
