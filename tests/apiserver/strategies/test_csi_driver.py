"""CSIDrivers count their changes, and warn of tokens that could be seen."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CSI_DRIVER
from tests.apiserver.core_documents import call, changed, created, document, strategy

TOKENS = {"tokenRequests": [{"audience": "a"}]}


def test_a_new_driver_has_no_generation_and_a_changed_one_has() -> None:
    made = document(CSI_DRIVER, spec={"preventPodSchedulingIfMissing": True})
    assert created(CSI_DRIVER, made) == []
    assert "preventPodSchedulingIfMissing" not in made["spec"]
    assert "generation" not in made["metadata"]
    faults, new = changed(CSI_DRIVER, made, spec={**made["spec"], "podInfoOnMount": True})
    assert (faults, new["metadata"]["generation"]) == ([], 1)


@pytest.mark.parametrize(
    ("spec", "is_warned"),
    [
        pytest.param({}, False, id="no tokens"),
        pytest.param(TOKENS, True, id="tokens in attributes"),
        pytest.param({**TOKENS, "serviceAccountTokenInSecrets": False}, False, id="as somebody wants"),
    ],
)
def test_tokens_belong_into_secrets(spec: dict[str, object], is_warned: bool) -> None:
    made, how = document(CSI_DRIVER, spec=spec), strategy(CSI_DRIVER)
    assert bool(how.warnings_on_create(made, call(CSI_DRIVER))) is is_warned
    assert bool(how.warnings_on_update(made, document(CSI_DRIVER, spec={}), call(CSI_DRIVER))) is is_warned
    assert how.warnings_on_update(made, made, call(CSI_DRIVER)) == []
