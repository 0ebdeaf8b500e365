"""Label selectors and node selectors as they are written; `api.labels` and `api.nodeselector` compile them.

1. Nothing is validated here: how an invalid operator is handled depends on where the selector is compiled.
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
