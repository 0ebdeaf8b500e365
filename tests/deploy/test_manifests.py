"""The manifests: complete, consistent with the code, and asking for no more than is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.registry import Collector

from mooring import __version__
from mooring.api.kinds import NODE, POD, kind_of_view
from mooring.cli.scheduler.command import all_flags
from mooring.client.interface import UnavailableClient
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.scheduler.config.load import load_configuration
from mooring.scheduler.event_handlers import WATCHED
from mooring.scheduler.scheduler import Scheduler
from tests.deploy.manifests import DEPLOY, documents, installed, one, rights

# What is written or looked up, beside what is watched. A new request of the scheduler's is a new row here, and a new
# right in deploy/scheduler/roles.yaml.
WRITTEN = {
    ("pods", "get"),
    ("pods", "delete"),
    ("pods/binding", "create"),
    ("pods/status", "patch"),
    ("pods/finalizers", "update"),
    ("persistentvolumes", "patch"),
    ("persistentvolumeclaims", "patch"),
    ("resourceclaims.resource.k8s.io", "get"),
    ("resourceclaims.resource.k8s.io", "create"),
    ("resourceclaims.resource.k8s.io", "delete"),
    ("resourceclaims.resource.k8s.io", "patch"),
    ("resourceclaims.resource.k8s.io", "update"),
    ("resourceclaims/status.resource.k8s.io", "patch"),
    ("resourceclaims/status.resource.k8s.io", "update"),
    ("resourceclaims/binding.resource.k8s.io", "patch"),
    ("resourceclaims/binding.resource.k8s.io", "update"),
    ("events", "create"),
    ("events", "patch"),
    ("events.events.k8s.io", "create"),
    ("events.events.k8s.io", "patch"),
}


def test_the_role_allows_what_is_asked_for_and_nothing_else() -> None:
    watched = {kind_of_view(view).resource for view in WATCHED} | {NODE.resource, POD.resource}
    wanted = {(resource, verb) for resource in watched for verb in ("list", "watch")} | WRITTEN
    assert rights(one("ClusterRole")) == wanted


def test_the_lease_is_the_one_that_the_role_allows() -> None:
    election = _configuration()["leaderElection"]
    role = one("Role")
    assert role["metadata"]["namespace"] == election["resourceNamespace"]
    named = [rule for rule in role["rules"] if "resourceNames" in rule]
    assert [(rule["resourceNames"], rule["verbs"]) for rule in named] == [
        ([election["resourceName"]], ["get", "update"])
    ]


def test_the_configuration_is_good() -> None:
    configuration = load_configuration(_configuration())
    assert [profile.scheduler_name for profile in configuration.profiles] == ["mooring"]


def test_every_binding_is_about_a_role_and_an_account_that_are_there() -> None:
    known = {(each["kind"], each["metadata"]["name"]) for each in installed()}
    known |= {("ClusterRole", "system:auth-delegator"), ("Role", "extension-apiserver-authentication-reader")}
    for binding in (each for each in installed() if each["kind"].endswith("RoleBinding")):
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in known
        for subject in binding["subjects"]:
            assert (subject["kind"], subject["name"], subject["namespace"]) == (
                "ServiceAccount",
                "mooring-scheduler",
                "mooring-system",
            )


def _pods() -> Iterator[Any]:
    yield pytest.param(one("Deployment")["spec"]["template"]["spec"], id="deployment")
    (pod,) = documents("static-pod", "mooring-scheduler.yaml")
    yield pytest.param(pod["spec"], id="static pod")


@pytest.mark.parametrize("spec", list(_pods()))
def test_a_pod(spec: dict[str, Any]) -> None:
    (container,) = spec["containers"]
    flags = {flag.name for flag in all_flags()}
    for argument in container["args"]:
        assert re.fullmatch(r"--[a-z-]+=.+", argument), argument
        assert argument[2:].partition("=")[0] in flags
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
        assert container[probe]["httpGet"]["path"] in ("/livez", "/healthz", "/readyz")
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    volumes = {volume["name"] for volume in spec["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_the_deployment_has_two_replicas_that_nobody_takes_away_together() -> None:
    deployment, budget, service = one("Deployment"), one("PodDisruptionBudget"), one("Service")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["replicas"] == 2
    assert budget["spec"]["maxUnavailable"] == 1
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        budget["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
    ):
        assert selector.items() <= labels.items()
    spec = deployment["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    assert spec["schedulerName"] != "mooring"


def test_the_image_is_of_this_version_and_runs_as_nobody() -> None:
    (kustomization,) = documents("scheduler", "kustomization.yaml")
    assert [image["newTag"] for image in kustomization["images"]] == [__version__]
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert re.search(r"^USER 65532:65532$", dockerfile, re.MULTILINE)
    assert re.search(r'^ENTRYPOINT \["mooring", "scheduler"\]$', dockerfile, re.MULTILINE)
    assert f"mooring-scheduler:{__version__}" in dockerfile
    root = DEPLOY.parent
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE):
        for name in copied.split():
            assert (root / name).exists(), name


def test_the_monitor_finds_the_service() -> None:
    (monitor,) = documents("monitoring", "service-monitor.yaml")
    service = one("Service")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    ports = {port["name"] for port in service["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads((DEPLOY / "monitoring" / "scheduler-dashboard.json").read_text())
    known = _metric_names() | {"leader_election_master_status"}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            names = re.findall(r"[a-z_]+(?=\{job)", target["expr"])
            assert names, target["expr"]
            for name in names:
                assert re.sub(r"_(bucket|sum|count)$", "", name) in known, name


def _metric_names() -> set[str]:
    clock = VirtualClock()

    async def main() -> set[str]:
        registry = CollectorRegistry()
        collectors: list[Collector] = [ProcessCollector(registry=registry)]
        Scheduler(UnavailableClient(), load_configuration(None), clock=clock, entropy=Entropy(1), metrics=registry)
        assert collectors
        found = set()
        for metric in registry.collect():
            found.add(f"{metric.name}_total" if metric.type == "counter" else metric.name)
        return found

    return run(main(), clock)


def _configuration() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(one("ConfigMap")["data"]["scheduler.yaml"])
    return data
