"""A configuration written down again: what kube-scheduler would write, and read back to the same."""

from __future__ import annotations

import pytest

from mooring.scheduler.config.encode import encode_configuration
from mooring.scheduler.config.load import load_configuration
from mooring.scheduler.config.types import API_VERSION, KIND

HEAD = {"apiVersion": API_VERSION, "kind": KIND}
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
FULL = {
    **HEAD,
    "clientConnection": {"kubeconfig": "/etc/config", "qps": 12.5},
    "leaderElection": {"leaderElect": False, "leaseDuration": "1m30s"},
    "percentageOfNodesToScore": 40,
    "delayCacheUntilActive": True,
    "extenders": [
        {
            "urlPrefix": "http://127.0.0.1:9/x",
            "filterVerb": "f",
            "weight": 3,
            "enableHTTPS": True,
            "tlsConfig": {"caData": "aGVsbG8="},
            "httpTimeout": "1500ms",
            "managedResources": [{"name": "a/b", "ignoredByScheduler": True}, {"name": "a/c"}],
        }
    ],
    "profiles": [
        {
            "schedulerName": "a",
            "percentageOfNodesToScore": 50,
            "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality", "weight": 7}]}},
            "pluginConfig": [
                {"name": "Mine", "args": {"free": ["form"]}},
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
                                ]
                            }
                        }
                    },
                },
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "RequestedToCapacityRatio",
                            "resources": [{"name": "cpu", "weight": 1}],
                            "requestedToCapacityRatio": {"shape": SHAPE},
                        }
                    },
                },
            ],
        },
        {"schedulerName": "b"},
    ],
}


@pytest.mark.parametrize("data", [None, HEAD, FULL], ids=["nothing", "the defaults", "everything"])
def test_it_is_read_back_to_the_same(data: object) -> None:
    configuration = load_configuration(data)
    assert load_configuration(encode_configuration(configuration)) == configuration


def test_what_is_shown_and_what_is_not() -> None:
    told = encode_configuration(load_configuration(None))
    assert told["leaderElection"] == {
        "leaderElect": True,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceName": "kube-scheduler",
        "resourceNamespace": "kube-system",
    }
    assert told["clientConnection"] == {
        "kubeconfig": "",
        "acceptContentTypes": "",
        "contentType": "application/vnd.kubernetes.protobuf",
        "qps": 50,
        "burst": 100,
    }
    assert set(told) == {
        "apiVersion",
        "kind",
        "parallelism",
        "leaderElection",
        "clientConnection",
        "enableProfiling",
        "enableContentionProfiling",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "profiles",
    }


def test_extenders_and_arguments_are_told_as_they_were_written() -> None:
    told = encode_configuration(load_configuration(FULL))
    assert told["extenders"] == [
        {**FULL["extenders"][0], "httpTimeout": "1.5s"}  # type: ignore[index]  # as Go prints it
    ]
    profiles = told["profiles"]
    assert isinstance(profiles, list)
    arguments = {entry["name"]: entry.get("args") for entry in profiles[0]["pluginConfig"]}
    assert arguments["Mine"] == {"free": ["form"]}
    assert arguments["NodeAffinity"]["kind"] == "NodeAffinityArgs"
    written = FULL["profiles"][0]["pluginConfig"]  # type: ignore[index]
    assert arguments["NodeAffinity"]["addedAffinity"] == written[1]["args"]["addedAffinity"]
    assert arguments["NodeResourcesFit"]["scoringStrategy"] == written[2]["args"]["scoringStrategy"]
