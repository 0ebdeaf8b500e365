"""Where the services are, as containers are told."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.workloads import Service
from mooring.kubelet.environment.service_variables import service_variables


def service(name: str, address: str, *ports: dict[str, Any]) -> Service:
    return convert_as(Service, {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": list(ports)}})


def test_a_service_is_told_by_host_port_and_links() -> None:
    assert service_variables([service("foo-bar", "1.2.3.4", {"port": 8080, "protocol": "TCP"})]) == {
        "FOO_BAR_SERVICE_HOST": "1.2.3.4",
        "FOO_BAR_SERVICE_PORT": "8080",
        "FOO_BAR_PORT": "tcp://1.2.3.4:8080",
        "FOO_BAR_PORT_8080_TCP": "tcp://1.2.3.4:8080",
        "FOO_BAR_PORT_8080_TCP_PROTO": "tcp",
        "FOO_BAR_PORT_8080_TCP_PORT": "8080",
        "FOO_BAR_PORT_8080_TCP_ADDR": "1.2.3.4",
    }


def test_every_port_has_its_variables_and_the_first_one_speaks_for_the_service() -> None:
    variables = service_variables(
        [
            service(
                "abc",
                "5.6.7.8",
                {"name": "u-d-p", "port": 8081, "protocol": "UDP"},
                {"name": "t-c-p", "port": 8081, "protocol": "TCP"},
            )
        ]
    )

    assert variables["ABC_SERVICE_PORT"] == "8081"
    assert variables["ABC_SERVICE_PORT_U_D_P"] == "8081"
    assert variables["ABC_SERVICE_PORT_T_C_P"] == "8081"
    assert variables["ABC_PORT"] == "udp://5.6.7.8:8081"
    assert variables["ABC_PORT_8081_UDP_PROTO"] == "udp"
    assert variables["ABC_PORT_8081_TCP_ADDR"] == "5.6.7.8"


def test_an_address_of_version_6_stands_in_brackets_only_where_a_port_follows() -> None:
    variables = service_variables([service("q", "2001:db8::1", {"port": 80})])

    assert variables["Q_SERVICE_HOST"] == "2001:db8::1"
    assert variables["Q_PORT"] == "tcp://[2001:db8::1]:80"


@pytest.mark.parametrize("address", ["", "None"])
def test_who_has_no_address_is_told_to_nobody(address: str) -> None:
    assert service_variables([service("headless", address, {"port": 80})]) == {}
