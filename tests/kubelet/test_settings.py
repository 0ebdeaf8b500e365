"""Settings of kubelets, node templates, node names, and facts about this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.api.yaml import YamlError
from mooring.kubelet.node_templates import PROBLEMS_MAX, NodeTemplateError, load_node_templates
from mooring.kubelet.settings import (
    DeviceTemplate,
    KubeletSettings,
    NodeCapacity,
    NodeTemplate,
    host_facts,
    host_settings,
    memory_kib_of,
    node_name_of,
    os_image_of,
)
from tests.kubelet.processes.process_harness import HOST


@pytest.mark.parametrize(
    ("hostname", "name"),
    [
        pytest.param("laptop", "laptop", id="as it is"),
        pytest.param("Laptop.Local", "laptop.local", id="in small letters"),
        pytest.param("my_host", "my-host", id="without what no name may have"),
        pytest.param("-x-", "x", id="without hyphens at its ends"),
        pytest.param("___", "localhost", id="nothing is left"),
    ],
)
def test_the_name_of_a_node(hostname: str, name: str) -> None:
    assert node_name_of(hostname) == name


def test_what_files_say() -> None:
    assert memory_kib_of("MemTotal:       16384 kB\nMemFree: 1 kB\n") == 16384
    assert memory_kib_of("") == 0
    assert os_image_of('NAME="x"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n') == "Debian GNU/Linux 12 (bookworm)"
    assert os_image_of("") == "Linux"


def test_this_machine_has_all_facts() -> None:
    facts = host_facts()
    assert facts.cpus > 0
    assert facts.memory_kib > 0
    assert facts.storage_kib > 0
    assert facts.address.count(".") == 3
    assert all([facts.name, facts.architecture, facts.kernel, facts.os_image, facts.machine_id, facts.boot_id])


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"count": -1}, "the number of nodes is -1; wanted 0 or more"),
        ({"lease_s": 0}, "the lease duration is 0 s; wanted 1 or more"),
        ({"name_prefix": "Node_"}, "nodes would be called 'Node_0'; wanted lower case letters"),
        ({"name_prefix": "-"}, "nodes would be called '-0'; wanted lower case letters"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError) as caught:
        KubeletSettings(**wrong)  # type: ignore[arg-type]
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"cpu": "many"}, "cpu of a node is 'many'; wanted an amount such as"),
        ({"memory": "-1Gi"}, "memory of a node is '-1Gi'; wanted an amount such as"),
        ({"others": {"example.com/gpu": ""}}, "example.com/gpu of a node is ''; wanted an amount such as"),
        ({"pods": -1}, "a node takes -1 pods; wanted 0 or more"),
    ],
)
def test_nodes_offer_amounts(wrong: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError) as caught:
        NodeCapacity(**wrong)  # type: ignore[arg-type]
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        pytest.param(KubeletSettings(count=2), ("node-0", "node-1"), id="simulated ones"),
        pytest.param(host_settings(HOST, 1), ("here",), id="this machine"),
        pytest.param(host_settings(HOST, 2), ("here-0", "here-1"), id="this machine, as two"),
    ],
)
def test_how_nodes_are_called(settings: KubeletSettings, names: tuple[str, ...]) -> None:
    assert settings.node_names() == names


@pytest.mark.parametrize(
    ("count", "cpu", "memory"),
    [pytest.param(1, "4", "1048576Ki", id="all of it"), pytest.param(3, "1333m", "349525Ki", id="its share")],
)
def test_what_a_machine_offers(count: int, cpu: str, memory: str) -> None:
    shape = host_settings(HOST, count).shape
    assert (shape.cpu, shape.memory) == (cpu, memory)


def test_a_lease_is_renewed_each_quarter_of_its_time() -> None:
    assert KubeletSettings().lease_period_s == 10.0
    assert KubeletSettings(lease_s=2).lease_period_s == 0.5


EXAMPLE = Path(__file__).parents[2] / "examples/nodes/node-templates.yaml"


def test_the_example() -> None:
    general, gpu, dra = load_node_templates(EXAMPLE.read_text(encoding="utf-8"), "example")
    assert general == NodeTemplate(
        "general", 3, NodeCapacity(cpu="8", memory="32Gi"), zones=("zone-a", "zone-b", "zone-c")
    )
    assert gpu.taints == ({"key": "gpu", "value": "present", "effect": "NoSchedule"},)
    assert gpu.shape.others == {"example.com/gpu": "8"}
    attributes: dict[str, dict[str, object]] = {
        "model": {"string": "h100"},
        "memoryChannels": {"int": 5},
        "driverVersion": {"version": "550.54.14"},
    }
    assert dra.devices == (DeviceTemplate("gpu.example.com", "gpu", 4, attributes, {"memory": "80Gi"}),)


def test_nodes_of_templates_follow_the_others() -> None:
    settings = KubeletSettings(count=2, templates=(NodeTemplate("gpu", 2), NodeTemplate("gpu-large", 1)))
    assert settings.node_names() == ("node-0", "node-1", "gpu-0", "gpu-1", "gpu-large-0")
    assert [settings.kind_of(name, 7)[0].name for name in ("gpu-1", "gpu-large-0", "node-1")] == [
        "gpu",
        "gpu-large",
        "node-",
    ]
    assert settings.kind_of("gpu-2", 7) == (NodeTemplate("node-", 2), 7), "an adopted node"


def test_a_name_that_both_have() -> None:
    with pytest.raises(ValueError, match="node node-0 is named by the prefix 'node-' and by a template"):
        KubeletSettings(count=1, templates=(NodeTemplate("node", 1),))


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("[]", ["f:1: wanted a mapping with the list nodeTemplates"], id="no mapping"),
        pytest.param("nodeTemplates: 3", ["f:1: wanted a mapping with the list nodeTemplates"], id="no list"),
        pytest.param(
            "nodeTemplates:\n- name: Gpu\n  count: -1\n",
            [
                "f:2: nodeTemplates[0].name: found 'Gpu', wanted lower-case letters, digits, - and .",
                "f:3: nodeTemplates[0].count: found -1, wanted a whole number from 0 to 100,000",
            ],
            id="several problems",
        ),
        pytest.param(
            "nodeTemplates:\n- name: a\n  label: {}\n",
            ["f:3: nodeTemplates[0].label: 'label' is not known here; did you mean 'labels'?"],
            id="an unknown field",
        ),
        pytest.param(
            "nodeTemplates:\n- name: a\n  labels:\n    disk: 1\n",
            ["f:4: nodeTemplates[0].labels.disk: found 1, wanted a text: put it in quotes"],
            id="a label that is a number",
        ),
        pytest.param(
            "nodeTemplates:\n- name: a\n  taints:\n  - {key: gpu, effect: Never}\n",
            ["f:4: nodeTemplates[0].taints[0].effect: found 'Never', wanted NoSchedule, PreferNoSchedule, NoExecute"],
            id="an effect",
        ),
        pytest.param(
            "nodeTemplates:\n- name: a\n  resources: {cpu: many}\n",
            ["f:3: nodeTemplates[0].resources.cpu: found 'many', wanted an amount such as 4, 500m or 16Gi"],
            id="an amount",
        ),
        pytest.param(
            "nodeTemplates:\n- name: a\n  resources: {pods: 1k}\n",
            ["f:3: nodeTemplates[0].resources.pods: found '1k', wanted a whole number"],
            id="a number of pods",
        ),
        pytest.param(
            "nodeTemplates:\n- name: a\n  devices:\n  - driver: g.example\n    count: 129\n    attributes: {a: [1]}\n",
            [
                "f:5: nodeTemplates[0].devices[0].count: found 129, wanted a whole number from 0 to 128",
                "f:6: nodeTemplates[0].devices[0].attributes.a: found [1], "
                "wanted a text, a whole number, true or false, or one of string, int, bool, version",
            ],
            id="devices",
        ),
        pytest.param(
            "nodeTemplates:\n- name: a\n- name: a\n",
            ["f:3: nodeTemplates[1].name: found 'a' a second time; wanted distinct names"],
            id="a name twice",
        ),
        pytest.param("nodeTemplates:\n- 3\n", ["f:2: nodeTemplates[0]: found 3, wanted a mapping"], id="no template"),
    ],
)
def test_problems_have_their_lines(text: str, problems: list[str]) -> None:
    with pytest.raises(NodeTemplateError) as raised:
        load_node_templates(text, "f")
    found = [f"{where}: {said}" for where, said in raised.value.problems]
    assert [problem for problem in problems if problem not in found] == []


def test_what_is_no_yaml() -> None:
    with pytest.raises(YamlError):
        load_node_templates("nodeTemplates: [", "f")


def test_a_file_with_many_problems_reports_the_first() -> None:
    text = "nodeTemplates:\n" + "".join(f"- {{name: n{number}, bad: 1}}\n" for number in range(PROBLEMS_MAX + 50))
    with pytest.raises(NodeTemplateError) as caught:
        load_node_templates(text, "nodes.yaml")
    assert len(caught.value.problems) == PROBLEMS_MAX
    assert caught.value.problems[-1][0] == f"nodes.yaml:{PROBLEMS_MAX + 1}"
