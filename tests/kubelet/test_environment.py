"""Variables and command of a container: precedence, `$(VAR)` expansion, Services, errors.

Values of the downward API.
"""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.decode import convert_as
from mooring.api.views.workloads import Service
from mooring.kubelet.environment import (
    argv_of,
    environment_of,
    expanded,
    expanded_by,
    field_value,
    host_name,
    resource_value,
    service_variables,
)
from mooring.kubelet.references import ContainerConfigError, NodeFacts, ReferencedObjects
from mooring.kubelet.views import ConfigMap, FieldSource, FullPod, ResourceSource, Secret
from tests.kubelet.harness import PLACE, container, container_with, pod, pod_with, whole

VARIABLES = {"VAR_A": "A", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}
MASTER = convert_as(
    Service, {"metadata": {"name": "kubernetes"}, "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 443}]}}
)
FOUND = ReferencedObjects(
    {"settings": ConfigMap(data={"LEVEL": "debug", "a=b": "x", "dotted.key": "1"}), "none": None},
    {"keys": Secret(data={"PASSWORD": b"s3cret", "raw": b"\xff"}), "nul": Secret(data={"k": b"\0"}), "none": None},
    [MASTER],
)
BASE = {"PATH": "/bin"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("$(VAR_A)", "A", id="the whole text"),
        pytest.param("___$(VAR_B)___", "___B___", id="in the middle"),
        pytest.param("$(VAR_A)$(VAR_B)", "AB", id="two together"),
        pytest.param("$(VAR_REF)", "$(VAR_A)", id="not twice"),
        pytest.param("$(VAR_EMPTY)x", "x", id="an empty one is there"),
        pytest.param("$(VAR_X)", "$(VAR_X)", id="an unknown one stays"),
        pytest.param("$$(VAR_A)", "$(VAR_A)", id="two dollars are one"),
        pytest.param("$$$(VAR_A)", "$A", id="three: a dollar and a value"),
        pytest.param("$$$$(VAR_A)", "$$(VAR_A)", id="four are two"),
        pytest.param("f000-$VAR_A", "f000-$VAR_A", id="no brackets, no variable"),
        pytest.param("$(VAR_A", "$(VAR_A", id="never closed"),
        pytest.param("$(VAR_A$(VAR_B)", "$(VAR_A$(VAR_B)", id="closed by the next one"),
        pytest.param("$()", "$()", id="without a name"),
        pytest.param("foo$", "foo$", id="a dollar at the end"),
        pytest.param("$?x", "$?x", id="a dollar and something else"),
        pytest.param("VAR_A))", "VAR_A))", id="only closed"),
        pytest.param("%!(VAR_A)é$(VAR_A)", "%!(VAR_A)éA", id="letters beyond ASCII"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_a_text_is_expanded(text: str, wanted: str) -> None:
    assert expanded(text, VARIABLES) == wanted


def test_a_caller_can_expand_names_itself() -> None:
    assert expanded_by("a-$(b)-$$(c)", str.upper) == "a-B-$(c)"


def service(name: str, address: str, *ports: dict[str, Any]) -> Service:
    return convert_as(Service, {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": list(ports)}})


def test_a_service_has_variables_for_host_port_and_links() -> None:
    assert service_variables([service("foo-bar", "1.2.3.4", {"port": 8080, "protocol": "TCP"})]) == {
        "FOO_BAR_SERVICE_HOST": "1.2.3.4",
        "FOO_BAR_SERVICE_PORT": "8080",
        "FOO_BAR_PORT": "tcp://1.2.3.4:8080",
        "FOO_BAR_PORT_8080_TCP": "tcp://1.2.3.4:8080",
        "FOO_BAR_PORT_8080_TCP_PROTO": "tcp",
        "FOO_BAR_PORT_8080_TCP_PORT": "8080",
        "FOO_BAR_PORT_8080_TCP_ADDR": "1.2.3.4",
    }


def test_every_port_has_variables_and_the_first_one_those_of_the_service() -> None:
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
def test_a_service_without_an_address_has_no_variables(address: str) -> None:
    assert service_variables([service("headless", address, {"port": 80})]) == {}


def variables(**fields: Any) -> dict[str, str]:
    """The container's own ones, without those that every container here has."""
    one = pod_with(**fields)
    environment = environment_of(one, one.spec.containers[0], FOUND, PLACE, BASE)
    common = environment_of(pod_with(), pod_with().spec.containers[0], FOUND, PLACE, BASE)
    return {name: value for name, value in environment.items() if common.get(name) != value}


def from_key(kind: str, name: str, key: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": "X", "valueFrom": {f"{kind}KeyRef": {"name": name, "key": key, **more}}}]


def test_every_container_has_the_variables_of_the_api_host_and_path() -> None:
    one = pod_with()

    environment = environment_of(one, one.spec.containers[0], FOUND, PLACE, BASE)

    assert environment["PATH"] == "/bin"
    assert environment["HOSTNAME"] == "web"
    assert environment["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"
    assert environment["KUBERNETES_PORT_443_TCP_PORT"] == "443"


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        pytest.param({"env": [{"name": "A", "value": "1"}]}, {"A": "1"}, id="a value"),
        pytest.param({"env": [{"name": "A"}]}, {"A": ""}, id="an empty value"),
        pytest.param({"env": [{"name": "PATH", "value": "/opt"}]}, {"PATH": "/opt"}, id="it overrides what is given"),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(C)-$$(A)"}]},
            {"A": "1", "B": "1-$(C)-$(A)"},
            id="one in another",
        ),
        pytest.param(
            {"env": [{"name": "B", "value": "$(A)"}, {"name": "A", "value": "1"}]},
            {"A": "1", "B": "$(A)"},
            id="but not one that comes later",
        ),
        pytest.param(
            {"env": [{"name": "URL", "value": "https://$(KUBERNETES_SERVICE_HOST)"}]},
            {"URL": "https://10.96.0.1"},
            id="a service in a variable",
        ),
        pytest.param(
            {"envFrom": [{"configMapRef": {"name": "settings"}}]},
            {"LEVEL": "debug", "dotted.key": "1"},
            id="a whole config map, without names that cannot be",
        ),
        pytest.param(
            {"envFrom": [{"prefix": "DB_", "secretRef": {"name": "keys"}}]},
            {"DB_PASSWORD": "s3cret", "DB_raw": "\udcff"},
            id="a whole secret with a prefix",
        ),
        pytest.param(
            {"envFrom": [{"configMapRef": {"name": "settings"}}], "env": [{"name": "LEVEL", "value": "not $(LEVEL)"}]},
            {"LEVEL": "not debug", "dotted.key": "1"},
            id="env wins over envFrom and can use it",
        ),
        pytest.param({"envFrom": [{"configMapRef": {"name": "none", "optional": True}}]}, {}, id="optional map"),
        pytest.param({"envFrom": [{"secretRef": {"name": "none", "optional": True}}]}, {}, id="optional secret"),
        pytest.param({"env": from_key("configMap", "settings", "LEVEL")}, {"X": "debug"}, id="one key of a map"),
        pytest.param({"env": from_key("secret", "keys", "PASSWORD")}, {"X": "s3cret"}, id="one key of a secret"),
        pytest.param({"env": from_key("configMap", "settings", "no", optional=True)}, {}, id="an optional key"),
        pytest.param({"env": from_key("configMap", "none", "no", optional=True)}, {}, id="a key of an optional map"),
        pytest.param({"env": from_key("secret", "keys", "no", optional=True)}, {}, id="an optional key of a secret"),
        pytest.param(
            {"env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
            {"IP": "10.0.0.7"},
            id="a field",
        ),
        pytest.param(
            {"env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
            {"CPU": "4"},
            id="a resource",
        ),
    ],
)
def test_a_container_gets_its_variables(fields: dict[str, Any], wanted: dict[str, str]) -> None:
    assert variables(**fields) == wanted


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        pytest.param({"envFrom": [{"configMapRef": {"name": "none"}}]}, 'configmap "none" not found', id="no map"),
        pytest.param({"envFrom": [{"secretRef": {"name": "none"}}]}, 'secret "none" not found', id="no secret"),
        pytest.param({"env": from_key("configMap", "none", "k")}, 'configmap "none" not found', id="no map for a key"),
        pytest.param(
            {"env": from_key("configMap", "settings", "k")},
            "couldn't find key k in ConfigMap default/settings",
            id="no such key",
        ),
        pytest.param(
            {"env": from_key("secret", "keys", "k")}, "couldn't find key k in Secret default/keys", id="nor in a secret"
        ),
        pytest.param(
            {"env": from_key("secret", "nul", "k")},
            "the value of variable X contains a NUL byte",
            id="a value that cannot be",
        ),
        pytest.param(
            {"env": [{"name": "X", "valueFrom": {"fileKeyRef": {"key": "k", "volumeName": "v", "path": "p"}}}]},
            "variable X comes from a file in a volume (fileKeyRef), which this kubelet does not read; "
            "use a config map or a secret",
            id="a file in a volume",
        ),
    ],
)
def test_what_is_missing_is_said_as_the_kubelet_says_it(fields: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ContainerConfigError) as refused:
        variables(**fields)

    assert str(refused.value) == wanted


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        pytest.param({"command": ["sh", "-c"], "args": ["echo $(A) $$(A)"]}, ["sh", "-c", "echo 1 $(A)"], id="both"),
        pytest.param({"command": ["run-$(A)"]}, ["run-1"], id="a command alone"),
        pytest.param({"args": ["x"]}, [], id="arguments alone are arguments of an image"),
        pytest.param({}, [], id="nothing"),
    ],
)
def test_the_command_is_expanded(fields: dict[str, Any], wanted: list[str]) -> None:
    assert argv_of(container_with(**fields), {"A": "1"}) == wanted


@pytest.mark.parametrize(
    ("changes", "name", "wanted"),
    [
        pytest.param({}, "web", "web", id="the pod's name"),
        pytest.param({"hostname": "db-0"}, "web", "db-0", id="the name it asks for"),
        pytest.param({}, "a" * 62 + "-" + "b", "a" * 62, id="no longer than a host's name, and no dash at its end"),
    ],
)
def test_a_pod_has_a_host_name(changes: dict[str, Any], name: str, wanted: str) -> None:
    assert host_name(whole(pod(name, **changes))) == wanted


POD = whole(
    pod(
        labels={"b": "2", "a": 'say "hi"\n'},
        annotations={"note": "é"},
        serviceAccountName="robot",
        containers=[
            container("main", resources={"limits": {"cpu": "1500m"}, "requests": {"cpu": "500m", "memory": "1Gi"}}),
            container("free"),
            container("huge", resources={"limits": {"hugepages-2Mi": "6Mi"}}),
        ],
        initContainers=[container("first", resources={"limits": {"memory": "1000"}})],
    )
)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "uid-1"),
        ("metadata.labels", 'a="say \\"hi\\"\\n"\nb="2"'),
        ("metadata.annotations", 'note="é"'),
        ("metadata.labels['b']", "2"),
        ("metadata.labels['c']", ""),
        ("metadata.annotations['note']", "é"),
        ("spec.nodeName", "node-0"),
        ("spec.serviceAccountName", "robot"),
        ("status.podIP", "10.0.0.7"),
        ("status.podIPs", "10.0.0.7"),
        ("status.hostIP", "172.16.0.1"),
        ("status.hostIPs", "172.16.0.1"),
    ],
)
def test_a_field_says_its_value(path: str, wanted: str) -> None:
    assert field_value(FieldSource(field_path=path), POD, PLACE) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        pytest.param(FieldSource(field_path="spec.volumes"), "field label not supported: spec.volumes", id="unknown"),
        pytest.param(
            FieldSource(field_path="spec.nodeName['a']"),
            "field label does not support subscript: spec.nodeName['a']",
            id="no map",
        ),
        pytest.param(FieldSource(api_version="v2", field_path="x"), "unsupported pod version: v2", id="version"),
    ],
)
def test_an_unsupported_field_is_an_error(source: FieldSource, wanted: str) -> None:
    with pytest.raises(ContainerConfigError) as refused:
        field_value(source, POD, PLACE)

    assert str(refused.value) == wanted


@pytest.mark.parametrize(
    ("name", "resource", "divisor", "wanted"),
    [
        pytest.param("main", "limits.cpu", 0, "2", id="cores are rounded up"),
        pytest.param("main", "limits.cpu", "1m", "1500", id="in thousandths"),
        pytest.param("main", "requests.cpu", "1", "1", id="half a core is one"),
        pytest.param("main", "requests.memory", 0, "1073741824", id="bytes"),
        pytest.param("main", "requests.memory", "1Mi", "1024", id="mebibytes"),
        pytest.param("main", "limits.memory", "1Gi", "8", id="without a limit: what the node has"),
        pytest.param("free", "limits.cpu", 0, "4", id="the same for cores"),
        pytest.param("free", "limits.ephemeral-storage", "1Gi", "10", id="and for the disk"),
        pytest.param("free", "requests.cpu", 0, "0", id="who requests nothing requests nothing"),
        pytest.param("huge", "limits.hugepages-2Mi", "2Mi", "3", id="huge pages"),
        pytest.param("free", "limits.hugepages-2Mi", "2Mi", "0", id="which the node does not lend"),
        pytest.param("first", "limits.memory", "1k", "1", id="of an init container"),
    ],
)
def test_a_resource_says_its_amount(name: str, resource: str, divisor: str | int, wanted: str) -> None:
    source = ResourceSource(container_name=name, resource=resource, divisor=divisor)

    assert resource_value(source, POD, None, PLACE) == wanted


def test_the_container_that_asks_is_meant_if_none_is_named() -> None:
    assert resource_value(ResourceSource(resource="limits.cpu"), POD, POD.spec.containers[0], PLACE) == "2"


def test_the_limit_of_the_pod_goes_before_what_the_node_has() -> None:
    limited = whole(pod(resources={"limits": {"cpu": "2"}}, containers=[container()]))

    assert resource_value(ResourceSource(resource="limits.cpu"), limited, limited.spec.containers[0], PLACE) == "2"


def test_without_a_node_there_is_no_limit() -> None:
    nowhere = NodeFacts("", "")

    assert resource_value(ResourceSource(resource="limits.cpu"), POD, POD.spec.containers[1], nowhere) == "0"


@pytest.mark.parametrize(
    ("pod", "source", "wanted"),
    [
        pytest.param(
            *(POD, ResourceSource(container_name="main", resource="limits.gpu")),
            "unsupported container resource : limits.gpu",
            id="unknown resource",
        ),
        pytest.param(
            *(POD, ResourceSource(container_name="nobody", resource="limits.cpu")),
            "container nobody not found",
            id="unknown container",
        ),
    ],
)
def test_an_unsupported_resource_is_an_error(pod: FullPod, source: ResourceSource, wanted: str) -> None:
    with pytest.raises(ContainerConfigError) as refused:
        resource_value(source, pod, None, PLACE)

    assert str(refused.value) == wanted
