"""The ClusterRole aggregation controller copies the rules of selected roles into aggregated roles.

Inputs: ClusterRoles, from an informer. Outputs: the rules of roles with an `aggregationRule`.

1. Rules are ordered by selector, then by the name of the role. Each rule occurs once.
2. A change of any role enqueues every aggregated role: there are few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

from mooring.api.errors import LabelSelectorError
from mooring.api.kinds import place_of
from mooring.api.labels import compile_selector
from mooring.api.views.administration import ClusterRole
from mooring.client.interface import PatchForm
from mooring.controllers.context import DONE, Controller, ControllerContext, Failed, Outcome

Rule: TypeAlias = Mapping[str, tuple[str, ...]]


class ClusterRoleAggregationController(Controller):
    """Keys are names of aggregated roles."""

    name: ClassVar[str] = "clusterrole-aggregation-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._roles = context.informers.informer(ClusterRole)
        self._aggregated: dict[str, None] = {}
        self.handle_changes(self._roles, self._on_role, self._on_deleted)

    async def sync(self, key: str) -> Outcome:
        role = self._roles.lister.by_key(key)
        if role is None or role.aggregation_rule is None:
            return DONE
        try:
            rules = aggregated_rules(role, self._roles.lister.list())
        except LabelSelectorError as error:
            return Failed(str(error))
        if rules != [*role.rules]:
            patch = {"rules": [{field: [*values] for field, values in rule.items()} for rule in rules]}
            await self.client.patch(*place_of(role), patch, form=PatchForm.MERGE)
        return DONE

    def _on_role(self, role: ClusterRole) -> None:
        if role.aggregation_rule is not None:
            self._aggregated[role.key] = None
        else:
            self._aggregated.pop(role.key, None)
        self._add_all()

    def _on_deleted(self, role: ClusterRole) -> None:
        self._aggregated.pop(role.key, None)
        self._add_all()

    def _add_all(self) -> None:
        for key in self._aggregated:
            self.queue.add(key)


def aggregated_rules(role: ClusterRole, roles: Sequence[ClusterRole]) -> list[Rule]:
    """The rules of the roles that a role selects. Raises `LabelSelectorError`."""
    rules: list[Rule] = []
    by_name = sorted(roles, key=lambda role: role.metadata.name)
    for selector in role.aggregation_rule.cluster_role_selectors if role.aggregation_rule is not None else ():
        matcher = compile_selector(selector)
        for other in by_name:
            if other.metadata.name != role.metadata.name and matcher.matches(other.metadata.labels):
                for rule in other.rules:
                    if rule not in rules:
                        rules.append(rule)
    return rules
