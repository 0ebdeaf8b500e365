"""Claims from templates, for pods that never saw a controller."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.views.devices import ResourceClaimTemplate, ResourceClaimTemplateSpec
from mooring.api.views.meta import ObjectMeta
from mooring.api.views.pod import Pod
from mooring.cli.template_claims import templates_in, with_claims_made
from tests.device_builders import asking, claiming_by_template, wants

TEMPLATE = ResourceClaimTemplate(
    metadata=ObjectMeta(name="t", namespace="default"), spec=ResourceClaimTemplateSpec(spec=asking(wants(count=2)))
)


def written(*, uid: str = "", is_made: bool = False) -> Pod:
    view = claiming_by_template("p", "made", is_made=is_made)
    return replace(view, metadata=replace(view.metadata, uid=uid))


def test_a_template_makes_a_claim_that_belongs_to_the_pod() -> None:
    pod, (claim,) = with_claims_made(written(), templates_in([TEMPLATE]))
    assert [(each.name, each.resource_claim_name) for each in pod.status.resource_claim_statuses] == [("gpu", "p-gpu")]
    assert (claim.key, claim.spec) == ("default/p-gpu", asking(wants(count=2)))
    assert [(owner.uid, owner.controller) for owner in claim.metadata.owner_references] == [("default/p", True)]


def test_nothing_is_made_for_pods_of_an_api_server_nor_twice_nor_out_of_nothing() -> None:
    for view, templates in ((written(uid="u"), [TEMPLATE]), (written(is_made=True), [TEMPLATE]), (written(), [])):
        assert with_claims_made(view, templates_in(templates)) == (view, [])
