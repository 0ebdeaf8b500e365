"""Invalid settings, node names, facts about this machine."""

from __future__ import annotations

import pytest

from mooring.kubelet.settings import (
    KubeletSettings,
    NodeCapacity,
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
