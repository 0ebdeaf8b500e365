"""A figure: a measured value, its unit, and its target if there is one. Printed as a line, or written as JSON."""

from __future__ import annotations

import msgspec


class Figure(msgspec.Struct, frozen=True):
    """One measured figure; without a target it is there for comparison only."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_reached(self) -> bool:
        is_enough = self.at_least is None or self.value >= self.at_least
        return is_enough and (self.at_most is None or self.value <= self.at_most)

    def __str__(self) -> str:
        words = [f"{self.name:<66} {self.value:>10,.2f} {self.unit:<4}"]
        if self.at_least is not None:
            words.append(f"(at least {self.at_least:,.2f})")
        if self.at_most is not None:
            words.append(f"(at most {self.at_most:,.2f})")
        if not self.is_reached:
            words.append("  MISSED")
        return " ".join(words).rstrip()
