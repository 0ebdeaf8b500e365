"""What `--controllers` means, in names of today and of before."""

from __future__ import annotations

import pytest

from mooring.controllers.settings import SettingError
from mooring.controllers.table import CONTROLLERS, NOT_IMPLEMENTED, OLD_NAMES, enabled_names

KNOWN = ("deployment-controller", "job-controller", "replicaset-controller")


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        pytest.param(["*"], list(KNOWN), id="all"),
        pytest.param(
            ["replicaset-controller", "job-controller"], ["job-controller", "replicaset-controller"], id="two"
        ),
        pytest.param(["*", "-job-controller"], ["deployment-controller", "replicaset-controller"], id="all but one"),
        pytest.param([], [], id="none"),
        pytest.param(["deployment", "job"], ["deployment-controller", "job-controller"], id="by their old names"),
        pytest.param(["*", "-replicaset"], ["deployment-controller", "job-controller"], id="all but an old name"),
        pytest.param(["*", "bootstrapsigner", "tokencleaner"], list(KNOWN), id="as kubeadm says it"),
        pytest.param(["*", "-nodeipam", "-ttl-controller"], list(KNOWN), id="without those that are not here"),
        pytest.param(["-job", "job", "*"], ["deployment-controller", "replicaset-controller"], id="first no, then yes"),
        pytest.param(["job", "-job"], ["job-controller"], id="first yes, then no"),
    ],
)
def test_which_controllers_are_meant(typed: list[str], names: list[str]) -> None:
    assert enabled_names(typed, KNOWN) == names


@pytest.mark.parametrize("typed", ["deploymnt", "-deploymnt"])
def test_a_controller_that_nobody_knows_is_refused(typed: str) -> None:
    with pytest.raises(SettingError, match="there is no controller 'deploymnt'; there are deployment-controller, job"):
        enabled_names([typed], KNOWN)


def test_a_controller_that_is_wanted_and_not_here_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert enabled_names(["*", "bootstrapsigner", "-nodeipam"], KNOWN) == list(KNOWN)
    assert caplog.messages == ["controller bootstrap-signer-controller is not implemented and is skipped"]


def test_no_controller_is_both_here_and_not_here() -> None:
    assert not NOT_IMPLEMENTED & CONTROLLERS.keys()


def test_each_old_name_stands_for_a_name_of_today() -> None:
    assert set(OLD_NAMES.values()) <= NOT_IMPLEMENTED | CONTROLLERS.keys()
