"""The environment of a container of the process runtime: variables, command, and the downward API.

Input: a pod, a container, the objects that it refers to, its node. Output: what a process is started with; or a
`ContainerConfigError`.

Later variables override earlier ones: base environment < Services < envFrom, in order < env, in order.

 1. `$(VAR)` in `env` can refer to earlier variables, `envFrom` and Services; in `command` and `args` to all variables.
    `$$` is one dollar. An unknown name stays as it is written. Values are not expanded a second time.
 2. Services without a cluster IP get no variables. There are FOO_SERVICE_HOST, FOO_SERVICE_PORT,
    FOO_SERVICE_PORT_<PORT NAME>, and Docker's link variables.
 3. A variable whose name contains `=` is dropped. A value with a NUL byte is an error.

The downward API gives fields and resources of the pod as texts. Input: a pod, its node, and a fieldRef or
resourceFieldRef. Output: a text; or a `ContainerConfigError` with the text of the kubelet.

 1. All labels or annotations are lines of `key="value"`, sorted; a single one is its value, empty if it is absent.
 2. A resource is divided by the divisor and rounded up: half a core is 1 core.
 3. A container without a limit gets the limit of the pod, or the allocatable resources of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mooring.api.quantity import quantity_milli, quantity_value
from mooring.api.views.meta import RawQuantity
from mooring.api.views.workloads import Service
from mooring.kubelet.references import ContainerConfigError, NodeFacts, ReferencedObjects
from mooring.kubelet.views import FieldSource, FullContainer, FullPod, ResourceSource, Variable, VariablesSource

_NO_ADDRESS = ("", "None")
HOSTNAME_LENGTH_MAX = 63


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Expands known variables; others stay as they are written."""
    return expanded_by(text, lambda name: variables.get(name, f"$({name})"))


def expanded_by(text: str, value_of: Callable[[str], str]) -> str:
    """Expands each name to `value_of(name)`."""
    if "$" not in text:
        return text
    parts: list[str] = []
    cursor = 0
    while (dollar := text.find("$", cursor)) >= 0 and dollar + 1 < len(text):
        parts.append(text[cursor:dollar])
        following = text[dollar + 1]
        closer = text.find(")", dollar + 2) if following == "(" else -1
        if closer >= 0:
            parts.append(value_of(text[dollar + 2 : closer]))
            cursor = closer + 1
        else:
            parts.append("$" if following == "$" else f"${following}")
            cursor = dollar + 2
    parts.append(text[cursor:])
    return "".join(parts)


def service_variables(services: Iterable[Service]) -> dict[str, str]:
    """The variables of Services. Of Services with the same name the last one counts."""
    variables: dict[str, str] = {}
    for service in services:
        if service.spec.cluster_ip in _NO_ADDRESS or not service.spec.ports:
            continue
        prefix = _variable_name(service.metadata.name)
        variables[f"{prefix}_SERVICE_HOST"] = service.spec.cluster_ip
        variables[f"{prefix}_SERVICE_PORT"] = str(service.spec.ports[0].port)
        for port in service.spec.ports:
            if port.name:
                variables[f"{prefix}_SERVICE_PORT_{_variable_name(port.name)}"] = str(port.port)
        variables |= _links(service, prefix)
    return variables


def _links(service: Service, prefix: str) -> dict[str, str]:
    """Docker's link variables; the first port also without its number."""
    variables: dict[str, str] = {}
    address = service.spec.cluster_ip
    host = f"[{address}]" if ":" in address else address
    for index, port in enumerate(service.spec.ports):
        protocol = port.protocol or "TCP"
        url = f"{protocol.lower()}://{host}:{port.port}"
        if index == 0:
            variables[f"{prefix}_PORT"] = url
        name = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
        variables[name] = url
        variables[f"{name}_PROTO"] = protocol.lower()
        variables[f"{name}_PORT"] = str(port.port)
        variables[f"{name}_ADDR"] = address
    return variables


def _variable_name(name: str) -> str:
    return name.replace("-", "_").upper()


def environment_of(
    pod: FullPod, container: FullContainer, found: ReferencedObjects, node: NodeFacts, base: Mapping[str, str]
) -> dict[str, str]:
    """All variables of a container. Raises `ContainerConfigError`."""
    services = service_variables(found.services)
    own: dict[str, str] = {}
    for source in container.env_from:
        own |= _from_object(source, found)
    for variable in container.env:
        value = _value(variable, pod, container, found, node, services | own)
        if value is not None:
            own[variable.name] = value
    environment = {**base, "HOSTNAME": host_name(pod), **services, **own}
    return {name: _checked(name, value) for name, value in environment.items() if _is_possible(name)}


def argv_of(container: FullContainer, environment: Mapping[str, str]) -> list[str]:
    """The command and its arguments; empty if the container has no command."""
    if not container.command:
        return []
    return [expanded(argument, environment) for argument in (*container.command, *container.args)]


def host_name(pod: FullPod) -> str:
    """The host name of a pod."""
    return (pod.spec.hostname or pod.metadata.name)[:HOSTNAME_LENGTH_MAX].rstrip("-.")


def _from_object(source: VariablesSource, found: ReferencedObjects) -> dict[str, str]:
    """All keys of a ConfigMap or Secret."""
    data: dict[str, str] = {}
    if (ref := source.config_map_ref) is not None:
        config_map = found.config_map(ref.name, is_optional=ref.optional)
        data = dict(config_map.data) if config_map is not None else {}
    elif (ref := source.secret_ref) is not None:
        secret = found.secret(ref.name, is_optional=ref.optional)
        data = {key: _text(value) for key, value in secret.data.items()} if secret is not None else {}
    return {source.prefix + key: value for key, value in data.items()}


def _value(
    variable: Variable,
    pod: FullPod,
    container: FullContainer,
    found: ReferencedObjects,
    node: NodeFacts,
    known: Mapping[str, str],
) -> str | None:
    """The value of a variable; None if its source is optional and does not exist."""
    if variable.value or variable.value_from is None:
        return expanded(variable.value, known)
    source = variable.value_from
    if source.field_ref is not None:
        return field_value(source.field_ref, pod, node)
    if source.resource_field_ref is not None:
        return resource_value(source.resource_field_ref, pod, container, node)
    if source.config_map_key_ref is not None or source.secret_key_ref is not None:
        return _value_of_key(variable, pod.metadata.namespace, found)
    if source.file_key_ref is not None:
        raise ContainerConfigError(
            f"variable {variable.name} comes from a file in a volume (fileKeyRef), which this kubelet does not read; "
            "use a config map or a secret"
        )
    return ""


def _value_of_key(variable: Variable, namespace: str, found: ReferencedObjects) -> str | None:
    assert variable.value_from is not None, f"{variable.name} has a value of its own"
    value: str | None = None
    if (ref := variable.value_from.config_map_key_ref) is not None:
        kind = "ConfigMap"
        config_map = found.config_map(ref.name, is_optional=ref.optional)
        value = config_map.data.get(ref.key) if config_map is not None else None
    else:
        kind, ref = "Secret", variable.value_from.secret_key_ref
        assert ref is not None, f"{variable.name} comes from no key"
        secret = found.secret(ref.name, is_optional=ref.optional)
        data = secret.data.get(ref.key) if secret is not None else None
        value = _text(data) if data is not None else None
    if value is None and not ref.optional:
        raise ContainerConfigError(f"couldn't find key {ref.key} in {kind} {namespace}/{ref.name}")
    return value


def _text(data: bytes) -> str:
    """Bytes that are not UTF-8 are passed to the process unchanged."""
    return data.decode("utf-8", "surrogateescape")


def _is_possible(name: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name


def _checked(name: str, value: str) -> str:
    if "\0" in value:
        raise ContainerConfigError(f"the value of variable {name} contains a NUL byte")
    return value


# --- the downward API -----------------------------------------------------------------------------------------


_LIMITED_BY_NODE = ("cpu", "memory", "ephemeral-storage")
_LIMITED_BY_POD = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\a": "\\a", "\b": "\\b"} | {
    "\f": "\\f",
    "\v": "\\v",
}


def field_value(source: FieldSource, pod: FullPod, node: NodeFacts) -> str:
    """The value of a fieldRef. Raises `ContainerConfigError`."""
    if source.api_version != "v1":
        raise ContainerConfigError(f"unsupported pod version: {source.api_version}")
    path, key = _split(source.field_path)
    metadata = pod.metadata
    if key is not None:
        maps = {"metadata.labels": metadata.labels, "metadata.annotations": metadata.annotations}
        if path not in maps:
            raise ContainerConfigError(f"field label does not support subscript: {source.field_path}")
        return maps[path].get(key, "")
    match path:
        case "metadata.labels":
            return _lines(metadata.labels)
        case "metadata.annotations":
            return _lines(metadata.annotations)
    values = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.host": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": node.host_ip,
        "status.hostIPs": node.host_ip,
        "status.podIP": node.pod_ip,
        "status.podIPs": node.pod_ip,
    }
    if path not in values:
        raise ContainerConfigError(f"field label not supported: {path}")
    return values[path]


def resource_value(source: ResourceSource, pod: FullPod, container: FullContainer | None, node: NodeFacts) -> str:
    """The value of a resourceFieldRef. Raises `ContainerConfigError`.

    `container` is the container with the reference; None where the reference must name one.
    """
    if source.container_name or container is None:
        container = _container_named(source.container_name, pod)
    side, _, name = source.resource.partition(".")
    is_known = name in _LIMITED_BY_NODE or name.startswith(_HUGE_PAGES)
    if side not in ("limits", "requests") or not is_known:
        raise ContainerConfigError(f"unsupported container resource : {source.resource}")
    amount = container.resources.requests.get(name, 0)
    if side == "limits":
        amount = _limit(name, pod, container, node)
    if name == "cpu":
        return _divided(quantity_milli(amount), quantity_milli(source.divisor) or 1000)
    return _divided(quantity_value(amount), quantity_value(source.divisor) or 1)


def _limit(name: str, pod: FullPod, container: FullContainer, node: NodeFacts) -> RawQuantity:
    own = container.resources.limits.get(name, 0)
    if quantity_milli(own) or name not in _LIMITED_BY_NODE or name not in node.allocatable:
        return own
    limits = pod.spec.resources.limits if pod.spec.resources is not None else {}
    of_pod = limits.get(name, 0) if name in _LIMITED_BY_POD else 0
    return of_pod if quantity_milli(of_pod) else node.allocatable[name]


def _container_named(name: str, pod: FullPod) -> FullContainer:
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        if container.name == name:
            return container
    raise ContainerConfigError(f"container {name} not found")


def _divided(amount: int, divisor: int) -> str:
    return str(-(-amount // divisor))


def _split(path: str) -> tuple[str, str | None]:
    """Splits `metadata.labels['x']`."""
    front, bracket, key = path.partition("['")
    return (front, key[:-2]) if front and bracket and key.endswith("']") else (path, None)


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(text: str) -> str:
    """Quotes as Go does: printable characters stay, others are escaped."""
    return '"' + "".join(_ESCAPES.get(character) or _printable(character) for character in text) + '"'


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
