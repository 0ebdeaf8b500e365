"""DynamicResources: what it says while devices are not allocated."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.api.views.pod import PodResourceClaim
from tests.builders import node, pod
from tests.scheduler.harness import decide, engine_of


def test_pods_without_claims_fit_and_score_nothing() -> None:
    decision = decide(engine_of(node("n1")), pod())
    assert decision.node_name == "n1"
    assert decision.scores["n1"]["DynamicResources"] == 0


def test_pods_with_claims_are_refused_in_plain_words() -> None:
    plain = pod()
    claiming = replace(plain, spec=replace(plain.spec, resource_claims=(PodResourceClaim(name="gpu"),)))
    decision = decide(engine_of(node("n1")), claiming)
    assert decision.rejection is not None
    assert decision.rejection.plugin == "DynamicResources"
    assert "devices are not allocated by this scheduler yet" in decision.rejection.message
