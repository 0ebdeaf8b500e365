"""stub"""
from __future__ import annotations
from typing import Any
class RuleScope:
    @classmethod
    def root(cls, s: Any) -> "RuleScope": return cls()
    def of_property(self, n: Any, h: Any) -> "RuleScope": return self
    def of_additional(self, h: Any) -> "RuleScope": return self
    def of_items(self, h: Any) -> "RuleScope": return self
def rule_faults(*a: Any, **k: Any) -> list[Any]: return []
def rule_text_faults(*a: Any, **k: Any) -> list[Any]: return []
def total_cost_faults(*a: Any, **k: Any) -> list[Any]: return []
