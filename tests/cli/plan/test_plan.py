"""`mooring plan` and `mooring compare` from the outside: what the options do, and what is an error."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.screens import ROOT, command_of, run, screen_of

PAGE = (ROOT / "docs/plan.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
SHOP = ("--cluster", "examples/clusters/shop.yaml")
CHECKOUT = "examples/manifests/checkout.yaml"


@pytest.fixture(autouse=True)
def _in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def planned(*arguments: str) -> dict[str, Any]:
    result = run("plan", *SHOP, *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.stdout)
    return data


@pytest.mark.parametrize("screen", SHOWN, ids=[command_of(screen) for screen in SHOWN])
def test_what_the_page_shows_is_what_happens(screen: str) -> None:
    assert screen_of(command_of(screen)) == screen


def test_a_result_has_all_documented_fields() -> None:
    assert planned().keys() >= {"placements", "pending", "capacity", "moves", "fixes", "nodesToAdd"}


def test_yaml_says_the_same_as_json() -> None:
    text = run("plan", *SHOP, "--remove-node", "old-2", "-o", "yaml").stdout
    assert yaml.safe_load(text) == planned("--remove-node", "old-2")


@pytest.mark.parametrize(("replicas", "pods"), [("1", 1), ("9", 9)])
def test_replicas_of_the_manifest(replicas: str, pods: int) -> None:
    result = planned(CHECKOUT, "--replicas", replicas)
    assert len(result["placements"]) + len(result["pending"]) == pods


def test_a_workload_counts_as_one_pod_for_the_capacity() -> None:
    pods = planned("--capacity", CHECKOUT)["capacity"]["pods"]
    assert list(pods) == ["shop/checkout"]
    assert pods["shop/checkout"] > 1


def test_the_seed_decides_between_equal_nodes(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}} for number in range(30)]
    allocatable = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}
    file.write_text(yaml.dump_all([{**node, "status": allocatable} for node in nodes]))

    def placed(seed: int) -> str:
        arguments = ["examples/manifests/large.yaml", "--seed", str(seed), "-o", "json"]
        return run("plan", "--cluster", str(file), *arguments).stdout.replace(f'"seed": {seed}', "")

    assert placed(1) == placed(1)
    assert placed(1) != placed(2)


@pytest.mark.parametrize(("arguments", "code"), [([CHECKOUT], 1), ([CHECKOUT, "--replicas", "1"], 0)])
def test_the_exit_code_tells_whether_a_pod_stays_pending(arguments: list[str], code: int) -> None:
    assert run("plan", *SHOP, *arguments, "--exit-code").exit_code == code


def test_pods_and_removed_nodes_are_one_question() -> None:
    result = planned(CHECKOUT, "--remove-node", "old-1")
    assert [each["node"] for each in result["drained"]] == ["old-1"]
    asked = [*result["placements"], *result["pending"]]
    assert any(each["pod"].startswith("shop/checkout-") for each in asked)
    assert any(each.get("movedFrom") == "old-1" for each in asked)
    assert not any(placement["node"] == "old-1" for placement in result["placements"])


def test_new_nodes_that_do_not_help_are_said_to() -> None:
    text = run("plan", *SHOP, "--add-node-like", "old-1").output
    assert "no nodes to add: the pending pods do not fit on new nodes like these either." in text
    assert "bound" not in text


def test_a_type_of_node_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "big.yaml"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "big"}}
    file.write_text(yaml.dump({**node, "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}}}))
    result = planned("--add-node-like", f"{file}=3")
    assert result["nodesToAdd"] == [{"type": "big", "count": 1, "price": 3.0}]
    assert result["pending"] == []


def test_a_type_of_node_with_devices_from_a_file(tmp_path: Path) -> None:
    def object_of(kind: str, name: str, **parts: Any) -> dict[str, Any]:
        return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **parts}

    def pod_with_a_device(name: str) -> dict[str, Any]:
        claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        containers = [{"name": "c", "image": "c:1", "resources": {"claims": [{"name": "gpu"}]}}]
        spec = {"resourceClaims": claims, "containers": containers}
        return {**object_of("Pod", name, spec=spec), "apiVersion": "v1"}

    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    template = {"spec": {"devices": {"requests": [request]}}}
    rule = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    pods = tmp_path / "pods.yaml"
    asked = [
        object_of("DeviceClass", "gpu", spec={"selectors": [rule]}),
        object_of("ResourceClaimTemplate", "gpu", spec=template),
        *(pod_with_a_device(f"p{number}") for number in range(5)),
    ]
    pods.write_text(yaml.dump_all(asked))
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    pool = {"name": "gpus", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(2)]
    slice_spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": "large", "devices": devices}
    example = tmp_path / "large.yaml"
    example.write_text(
        yaml.dump_all(
            [
                {**object_of("Node", "large", status={"allocatable": amounts}), "apiVersion": "v1"},
                object_of("ResourceSlice", "large-gpus", spec=slice_spec),
            ]
        )
    )
    result = planned(str(pods), "--add-node-like", str(example))
    assert result["pending"] == []
    assert [(each["type"], each["count"]) for each in result["nodesToAdd"]] == [("large", 3)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--add-node-like", "nosuch"], "the cluster has no such node, and there is no such file"),
        (["--add-node-like", "old-1=cheap"], "'cheap' is no price"),
        (["--add-node-like", "old-1=-1"], "wanted a price from 0 to 1e+09"),
        (["-l", "pool=none"], "no node has the labels pool=none"),
        (["-l", "pool in"], "--selector"),
        (["--fix", "web-5c9d-1"], "pod shop/web-5c9d-1 is on node old-1 already"),
        (["--fix", "nosuch"], 'found no pod "nosuch"'),
        (["--capacity"], "--capacity needs a MANIFEST"),
        (["--ratio", "1:2"], "--ratio belongs to --capacity"),
        (["--capacity", CHECKOUT, "--ratio", "1:x"], "is no ratio"),
        (["--capacity", CHECKOUT, "--ratio", "1:2"], "--ratio has 2 numbers for 1 pod;"),
        (["--for", CHECKOUT], "--for belongs to --defragment"),
        (["--defragment", "--for", CHECKOUT], "found 6 pods that are not placed; --for makes room for one"),
        (["--defragment", "--execute"], "--execute belongs to --defragment on a live cluster"),
        (["--defragment", CHECKOUT], "--defragment takes no MANIFEST"),
        (["--count", "none"], "neither a number from 1 on nor the word auto"),
        (["nosuch.yaml"], "no such file or folder"),
        ([CHECKOUT, "--replicas", "0"], "found no pods to plan"),
    ],
)
def test_errors(arguments: list[str], words: str) -> None:
    result = run("plan", *SHOP, *arguments)
    assert result.exit_code == 2, result.output
    assert words in result.output


def test_a_comparison_has_an_outcome_for_each_seed_and_a_plot(tmp_path: Path) -> None:
    plot = tmp_path / "nodes.svg"
    arguments = ["--config", "default", "--config", "examples/configurations/packing.yaml", "--pods", "all"]
    result = run("compare", *SHOP, *arguments, "--seeds", "2", "-o", "json", "--plot", str(plot))
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert [len(outcomes) for outcomes in data["outcomes"].values()] == [2, 2]
    assert data["summary"]["default"]["placed"]["mean"] < data["bound"]["value"]
    assert plot.read_text().count("<rect") == 2 * (1 + 4)
    assert yaml.safe_load(run("compare", *SHOP, *arguments, "--seeds", "2", "-o", "yaml").stdout) == data


def test_a_comparison_without_pending_pods_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "idle.yaml"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    file.write_text(yaml.dump({**node, "status": {"allocatable": {"cpu": "1", "pods": "1"}}}))
    configs = ["--config", "default", "--config", "examples/configurations/packing.yaml"]
    result = run("compare", "--cluster", str(file), *configs)
    assert result.exit_code == 2
    assert "found no pods to place" in result.output


def test_a_comparison_places_pods_with_devices_anew(tmp_path: Path) -> None:
    """The pod cannot stay on its node, which is cordoned, and takes a device of the other one."""
    file, driver = tmp_path / "devices.yaml", "gpu.example.com"
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {"unschedulable": name == "n1"},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}},
        }
        for name in ("n1", "n2")
    ]
    head = {"apiVersion": "resource.k8s.io/v1"}
    pools = [
        {
            **head,
            "kind": "ResourceSlice",
            "metadata": {"name": name},
            "spec": {
                "driver": driver,
                "nodeName": name,
                "devices": [{"name": "gpu-0"}],
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            },
        }
        for name in ("n1", "n2")
    ]
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    device_class = {**head, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}
    on_n1 = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    held = {
        "allocation": {
            "devices": {"results": [{"request": "r", "driver": driver, "pool": "n1", "device": "gpu-0"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [on_n1]}]},
        },
        "reservedFor": [{"resource": "pods", "name": "web", "uid": "u-web"}],
    }
    claim = {
        **head,
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default", "uid": "u-c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        "status": held,
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-rs", "controller": True}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "uid": "u-web", "ownerReferences": [owner]},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
        },
    }
    file.write_text(yaml.dump_all([*nodes, *pools, device_class, claim, pod]))
    configs = ["--config", "default", "--config", "examples/configurations/packing.yaml"]
    result = run("compare", "--cluster", str(file), *configs, "--pods", "all", "--seeds", "1", "-o", "json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)["summary"]["default"]
    assert (summary["placed"]["mean"], summary["pending"]["mean"]) == (1, 0), summary
