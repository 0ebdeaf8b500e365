"""Decoding pods for simulated kubelets."""

from __future__ import annotations

from mooring.api.decode import decode_as
from mooring.api.resources import fit_filter_requests
from mooring.kubelet.views import KubeletPod

RAW = b"""{"metadata":{"name":"web","uid":"u","deletionGracePeriodSeconds":7},
"spec":{"restartPolicy":"Never","readinessGates":[{"conditionType":"lb"}],"containers":[{"name":"main",
"resources":{"requests":{"cpu":"1500m"}},"restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In",
"values":[3]}}]}]},"status":{"podIP":"10.0.0.2","containerStatuses":[{"name":"main","restartCount":2,"started":true,
"lastState":{"terminated":{"exitCode":3,"containerID":"c"}},"state":{"running":{"startedAt":"t"}}}]}}"""


def test_a_pod_is_read() -> None:
    pod = decode_as(KubeletPod, RAW)
    (main,), (told,) = pod.spec.containers, pod.status.container_statuses
    assert pod.metadata.deletion_grace_period_seconds == 7
    assert (pod.spec.restart_policy, pod.spec.readiness_gates[0].condition_type) == ("Never", "lb")
    codes = main.restart_policy_rules[0].exit_codes
    assert codes is not None
    assert (codes.operator, codes.values) == ("In", (3,))
    assert pod.status.pod_ip == "10.0.0.2"
    assert told.last_state.terminated is not None
    assert (told.last_state.terminated.exit_code, told.last_state.terminated.container_id) == (3, "c")
    assert (told.restart_count, told.started) == (2, True)
    assert fit_filter_requests(pod) == {"cpu": 1500}
