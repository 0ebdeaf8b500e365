"""What this machine is, as a kubelet tells it."""

from __future__ import annotations

import pytest

from mooring.kubelet.host import host_facts, memory_kib_of, node_name_of, os_image_of


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
