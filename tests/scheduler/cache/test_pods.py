"""Records of pods, and their signatures: which pods share one, and when it is dropped and registered again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from mooring.api.labels import compile_selector
from mooring.api.views.meta import Condition
from mooring.api.views.pod import ContainerPort, Pod, PodAffinityTerm, ResourceRequirements
from mooring.api.views.storage import ImageVolumeSource, Volume
from mooring.kit.clock import parse_rfc3339
from mooring.scheduler.cache import pods
from mooring.scheduler.cache.columns import Columns
from mooring.scheduler.cache.pods import NO_START_S, Nominations, PodInfo, host_ports, signature_key
from mooring.scheduler.cache.resources import HostPort
from mooring.scheduler.cache.selectors import PodSelector
from mooring.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from tests.api.builders import container, node_selector, preferred, resized, selector, sidecar, term
from tests.builders import HOSTNAME, ZONE, claim_volume, disk, node, owned_by, pod, pods_like, spread
from tests.scheduler.harness import decide, engine_of, rejected_by

WEB = {"app": "web"}
NEAR: PodAffinityTerm = pods_like(ZONE, app="db")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod("another"), id="its name"),
        pytest.param(pod("p", uid="another"), id="its uid"),
        pytest.param(pod("p", on="n1"), id="its node"),
        pytest.param(pod("p", nominated="n1"), id="its nomination"),
        pytest.param(pod("p", claims=["data"]), id="its claims"),
        pytest.param(pod("p", volumes=[disk("d"), Volume(name="token")]), id="its disks"),
        pytest.param(pod("p", gates=["wait"]), id="its gates"),
        pytest.param(pod("p", started_s=7.0), id="when it started"),
        pytest.param(pod("p", terminating=True), id="its end"),
        pytest.param(pod("p", preempted=True), id="why it ends"),
        pytest.param(pod("p", phase="Running"), id="its phase"),
    ],
)
def test_pods_that_differ_only_in_this_have_one_shape(other: Pod) -> None:
    assert signature_key(other) == signature_key(pod("p"))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod(namespace="other"), id="namespace"),
        pytest.param(pod(labels=WEB), id="labels"),
        pytest.param(pod(cpu="100m"), id="requests"),
        pytest.param(pod(image="web:1"), id="image"),
        pytest.param(pod(ports=["80"]), id="host ports"),
        pytest.param(pod(init=[sidecar(cpu=1)]), id="init containers"),
        pytest.param(pod(priority=1), id="priority"),
        pytest.param(pod(preemption_policy="Never"), id="preemption policy"),
        pytest.param(pod(tolerations=["gpu"]), id="tolerations"),
        pytest.param(pod(node_labels={"disk": "ssd"}), id="node selector"),
        pytest.param(pod(nodes=node_selector(term("disk In ssd"))), id="node affinity"),
        pytest.param(pod(prefers_nodes=[preferred(1, "disk In ssd")]), id="preferred nodes"),
        pytest.param(pod(near=[NEAR]), id="affinity"),
        pytest.param(pod(apart=[NEAR]), id="anti-affinity"),
        pytest.param(pod(prefers_near=[(1, NEAR)]), id="preferred affinity"),
        pytest.param(pod(prefers_apart=[(1, NEAR)]), id="preferred anti-affinity"),
        pytest.param(pod(spread=[spread(HOSTNAME, app="web")]), id="spreading"),
        pytest.param(pod(owner=owned_by("ReplicaSet", "web")), id="owner"),
        pytest.param(pod(scheduler="mine"), id="scheduler"),
        pytest.param(pod(volumes=[Volume(image=ImageVolumeSource(reference="data:1"))]), id="images among its volumes"),
    ],
)
def test_pods_that_differ_in_this_have_two_shapes(other: Pod) -> None:
    assert signature_key(other) != signature_key(pod())


RUNNING = pod(containers=[container(cpu=1)], init=[sidecar(cpu=1)])


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"container_statuses": (resized({"cpu": 2}),)}, id="a container"),
        pytest.param({"init_container_statuses": (resized({"cpu": 2}, name="sidecar"),)}, id="a sidecar"),
        pytest.param(
            {"container_statuses": (resized({"cpu": 1}, allocated={"cpu": 3}),)}, id="what a container was promised"
        ),
    ],
)
def test_pods_that_were_granted_different_things_count_for_different_things(status: dict[str, object]) -> None:
    columns = Columns()
    grown = replace(RUNNING, status=replace(RUNNING.status, **status))
    before, after = columns.record(RUNNING), columns.record(grown)
    assert before.signature is not after.signature
    assert before.signature.request_vector.tolist() != after.signature.request_vector.tolist()


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"container_statuses": (resized({"cpu": 1}),)}, id="a container"),
        pytest.param({"container_statuses": (resized({"cpu": 1}, allocated={"cpu": 1}),)}, id="and was promised it"),
        pytest.param(
            {
                "container_statuses": (resized({"cpu": 1}),),
                "init_container_statuses": (resized({"cpu": 1}, name="sidecar"),),
            },
            id="a sidecar, too",
        ),
        pytest.param({"conditions": (Condition(type="Ready", status="True"),)}, id="and it is ready"),
    ],
)
def test_a_pod_with_its_requests_granted_keeps_its_signature(status: dict[str, object]) -> None:
    assert signature_key(replace(RUNNING, status=replace(RUNNING.status, **status))) == signature_key(RUNNING)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"container_statuses": (resized({"cpu": 1}, name="debugger"),)}, id="a container that it has not"),
        pytest.param(
            {
                "container_statuses": (resized({"cpu": 1}),),
                "conditions": (Condition(type="PodResizePending", status="True", reason="Infeasible"),),
            },
            id="a resize that cannot be",
        ),
        pytest.param({"resources": ResourceRequirements(requests={"cpu": 1})}, id="as a whole"),
    ],
)
def test_a_resized_pod_has_another_signature(status: dict[str, object]) -> None:
    assert signature_key(replace(RUNNING, status=replace(RUNNING.status, **status))) != signature_key(RUNNING)


def test_images_of_volumes_are_reported_from_images_of_containers() -> None:
    in_volume = pod(volumes=[Volume(name="v", image=ImageVolumeSource(reference="a:1"))])
    renamed = pod(volumes=[Volume(name="w", image=ImageVolumeSource(reference="a:1")), claim_volume("c")])
    assert signature_key(in_volume) == signature_key(renamed)
    assert signature_key(in_volume) != signature_key(pod(image="a:1"))


def test_host_ports_of_containers_that_stay() -> None:
    port = ContainerPort(host_port=9, host_ip="10.0.0.1", protocol="UDP")
    made = pod(
        containers=[replace(container(), ports=(ContainerPort(host_port=80), ContainerPort(container_port=70)))],
        init=[replace(sidecar(), ports=(port,)), replace(container(), ports=(ContainerPort(host_port=1),))],
    )
    assert host_ports(made.spec) == (HostPort("UDP", 9, "10.0.0.1"), HostPort("TCP", 80, "0.0.0.0"))


def test_a_record_has_identity_and_node() -> None:
    view = pod("web-1", namespace="shop", uid="u1", on="n1", nominated="n2", priority=7, claims=["data"], started_s=9.0)
    record = Columns().record(view)
    assert (record.key, record.namespace, record.uid, record.priority) == ("shop/web-1", "shop", "u1", 7)
    assert (record.node_name, record.nominated_node, record.row) == ("n1", "n2", -1)
    assert record.claims == ("shop/data",)
    assert record.start_s == parse_rfc3339("1970-01-01T00:00:09Z")
    assert (record.terminating, record.disrupted) == (False, False)


def test_a_pod_without_uid_start_and_priority() -> None:
    record = Columns().record(pod("web-1", namespace="shop"))
    assert (record.uid, record.start_s, record.priority) == ("shop/web-1", NO_START_S, 0)


@pytest.mark.parametrize(
    ("view", "terminating", "disrupted"),
    [
        (pod(terminating=True), True, False),
        (pod(preempted=True), True, True),
        (replace(pod(preempted=True), metadata=pod().metadata), False, False),
    ],
    ids=["deleted by somebody", "deleted by preemption", "marked, but not deleted"],
)
def test_a_pod_on_its_way_out(view: Pod, terminating: bool, disrupted: bool) -> None:
    record = Columns().record(view)
    assert (record.terminating, record.disrupted) == (terminating, disrupted)


def test_volumes_that_no_plugin_reads_are_not_stored() -> None:
    record = Columns().record(pod(volumes=[Volume(name="token"), disk("d")]))
    assert [volume.name for volume in record.volumes] == ["d"]


def records(*names: str) -> list[PodInfo]:
    columns = Columns()
    return [columns.record(pod(name)) for name in names]


def test_pods_are_found_by_node_in_the_order_of_nomination() -> None:
    nominations = Nominations()
    first, second, third = records("a", "b", "c")
    for nominated in (second, first, third):
        nominations.add(nominated, "n1" if nominated is not third else "n2")
    assert list(nominations.on("n1")) == [second, first]
    assert list(nominations.nodes()) == ["n1", "n2"]
    assert nominations.node_of(third) == "n2"
    assert len(nominations) == 3


def test_a_new_nomination_replaces_the_old_one() -> None:
    nominations = Nominations()
    (nominated,) = records("a")
    nominations.add(nominated, "n1")
    nominations.add(nominated, "n2")
    assert list(nominations.on("n1")) == []
    assert list(nominations.nodes()) == ["n2"]
    assert len(nominations) == 1


def test_a_withdrawn_nomination_leaves_nothing() -> None:
    nominations = Nominations()
    (nominated,) = records("a")
    nominations.add(nominated, "n1")
    assert nominations.get(nominated.uid) is nominated
    assert nominations.remove(nominated) == "n1"
    assert nominations.remove(nominated) is None
    assert nominations.get(nominated.uid) is None
    assert nominations.node_of(nominated) is None
    assert (len(nominations), list(nominations.nodes())) == (0, [])


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps spare nobody who has no pods."""
    monkeypatch.setattr(pods, "RECENT_USES", 0)


def swept(columns: Columns) -> None:
    columns.record(pod("somebody else", namespace="elsewhere"))
    columns.signatures.sweep()


def web(name: str, apart: Sequence[PodAffinityTerm] = ()) -> Pod:
    return pod(name, labels=WEB, apart=apart)


def test_pods_that_are_alike_share_a_shape() -> None:
    columns = Columns()
    assert columns.record(web("a")).signature is columns.record(web("b")).signature
    assert len(columns.signatures) == 1


def test_an_unused_signature_is_removed() -> None:
    columns = Columns()
    signature = columns.record(web("a", apart=[pods_like(HOSTNAME, app="web")])).signature
    swept(columns)
    assert not signature.registered
    assert list(columns.terms) == []
    assert all(pod_class.labels != WEB for pod_class in columns.selectors.classes)


def test_a_shape_with_placed_pods_stays() -> None:
    columns = Columns()
    columns.put_node(node("n1"))
    record = columns.record(web("a"))
    columns.place(record, "n1")
    swept(columns)
    assert record.signature.registered
    columns.displace(record)
    swept(columns)
    assert not record.signature.registered


def test_the_registry_sweeps_itself_when_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods, "SIGNATURES_BEFORE_SWEEP", 4)
    registry = Columns()
    registry.signatures.sweep()
    for number in range(50):
        registry.record(pod(f"p{number}", labels={"number": str(number)}))
    assert len(registry.signatures) <= 5


def test_a_pod_that_outlived_its_shape_is_placed_as_any_other() -> None:
    columns = Columns()
    columns.put_node(node("n1"))
    old = columns.record(web("old"))
    swept(columns)
    new = columns.record(web("new"))
    columns.place(old, "n1")
    assert old.signature is new.signature
    columns.displace(old)
    swept(columns)
    columns.place(new, "n1")
    part = PodSelector(None, compile_selector(selector(app="web")))
    assert columns.selectors.counter((part,), counts_terminating=False).rows[0] == 1


def test_a_pod_that_outlived_its_shape_is_rejected_as_any_other() -> None:
    engine = engine_of(node("n1"))
    waiting = engine.record(web("waiting"))
    swept(engine.columns)
    engine.put(pod("loner", on="n1", apart=[pods_like(HOSTNAME, app="web")]))
    status = engine.decide(waiting, in_full=True).node_to_status["n1"]
    assert status is not None
    assert status.reasons == ("node(s) didn't satisfy existing pods anti-affinity rules",)


def test_a_shape_that_comes_back_carries_its_terms_again() -> None:
    engine = engine_of(node("n1"), node("n2"))
    loner = engine.record(web("loner", apart=[pods_like(HOSTNAME, app="web")]))
    swept(engine.columns)
    engine.columns.place(loner, "n2")
    assert rejected_by(engine, InterPodAffinity, web("another")) == {
        "n2": ("node(s) didn't satisfy existing pods anti-affinity rules",)
    }
    assert decide(engine, web("another")).node_name == "n1"
