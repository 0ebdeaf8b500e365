"""Selectors as they are written down: of labels, and of nodes.

Comes in   the selectors inside of pods, claims, volumes, budgets, classes and configurations
Goes out   plain values; `mooring.api.labels` and `mooring.api.nodeselector` compile them into matchers

 1. Nothing is checked here: an operator may be nonsense, because whose error that is depends on who compiles it.
"""

from collections.abc import Mapping

from msgspec import field

from mooring.api.views.base import Int32, View


class LabelSelectorRequirement(View):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(View):
    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(View):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(View):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(View):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class TopologySelectorLabelRequirement(View):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(View):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()
