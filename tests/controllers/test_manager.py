"""The controller context, the manager, the table of controllers, their settings, and the kinds that they need."""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD, REPLICA_SET
from mooring.api.views.administration import (
    CustomResourceDefinition,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionStatus,
    DefinitionNames,
    DefinitionVersion,
)
from mooring.api.views.meta import Condition, ObjectMeta
from mooring.client.informer import Informer
from mooring.client.interface import Change
from mooring.controllers.context import DONE, Controller, ControllerContext, Outcome, split_key
from mooring.controllers.manager import CONTROLLERS, NOT_IMPLEMENTED, OLD_NAMES, ControllerManager, enabled_names
from mooring.controllers.served_kinds import ServedKinds, kinds_of
from mooring.controllers.settings import (
    ControllerSettings,
    SettingError,
)
from mooring.kit.clock import VirtualClock
from mooring.kit.entropy import Entropy
from mooring.kit.loop import run
from mooring.kit.tasks import TaskGroup
from tests.api_servers import NO_CLIENT, open_loopback_client
from tests.controllers.builders import replica_set
from tests.controllers.world import open_world


class Listener(Controller):
    name = "listener-controller"
    workers = 2

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.synced: list[str] = []

    async def sync(self, key: str) -> Outcome:
        self.synced.append(key)
        return DONE


def context(clock: VirtualClock) -> ControllerContext:
    return ControllerContext(NO_CLIENT, clock, Entropy(2))


def test_a_controller_syncs_every_key_until_it_is_stopped() -> None:
    clock = VirtualClock()

    async def main() -> None:
        controller = Listener(context(clock))
        async with TaskGroup("test") as group:
            controller.start(group)
            for key in ("a", "b", "a"):
                controller.queue.add(key)
            await clock.wait(1)
            controller.stop()
        assert controller.synced == ["a", "b"]

    run(main(), clock)


def test_all_controllers_share_the_pod_indexes() -> None:
    shared = context(VirtualClock())
    assert shared.pod_groups() is shared.pod_groups()
    assert shared.pod_counts() is shared.pod_counts()


@pytest.mark.parametrize(("key", "parts"), [("ns/web", ("ns", "web")), ("n1", ("", "n1"))])
def test_keys_are_namespace_and_name(key: str, parts: tuple[str, str]) -> None:
    assert split_key(key) == parts


# --- Starting and stopping controllers together ----------------------------------------------------------------------


def test_the_table_calls_each_controller_by_its_name() -> None:
    assert all(name.endswith("-controller") for name in CONTROLLERS)


def test_a_manager_that_is_stopped_finishes_and_ends() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_loopback_client(clock) as client:
            manager = ControllerManager(client, clock, Entropy(2), enabled=["replicaset-controller"])
            async with TaskGroup("test") as group:
                group.start(manager.run(), name="manager")
                await manager.wait_working()
                assert [controller.queue.statistics()["depth"] for controller in manager.controllers] == [0]
                await client.create(REPLICA_SET, "default", replica_set("web", replicas=2))
                await clock.wait(1)
                manager.stop()
            assert len((await client.list(POD)).items) == 2

    run(main(), clock)


def test_another_manager_goes_on_where_the_first_was_killed() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with open_world(clock, Entropy(1)) as world:
            manager = ControllerManager(world.client, clock, Entropy(2), enabled=["replicaset-controller"])
            task = world.group.start_background(manager.run(), name="first")
            await manager.wait_working()
            await world.create(replica_set("web", replicas=100))
            await clock.wait(0)
            task.cancel()
            await clock.wait(1)
            world.start_manager(["replicaset-controller"])
            await world.settle()
            assert len(await world.pods()) == 100

    run(main(), clock)


# --- What `--controllers` means, in names of today and of before -----------------------------------------------------


KNOWN = ("deployment-controller", "job-controller", "replicaset-controller")


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        pytest.param(["*"], list(KNOWN), id="all"),
        pytest.param(
            ["replicaset-controller", "job-controller"], ["job-controller", "replicaset-controller"], id="two"
        ),
        pytest.param(["*", "-job-controller"], ["deployment-controller", "replicaset-controller"], id="all but one"),
        pytest.param([], [], id="none"),
        pytest.param(["deployment", "job"], ["deployment-controller", "job-controller"], id="by their old names"),
        pytest.param(["*", "-replicaset"], ["deployment-controller", "job-controller"], id="all but an old name"),
        pytest.param(["*", "bootstrapsigner", "tokencleaner"], list(KNOWN), id="as kubeadm says it"),
        pytest.param(["*", "-nodeipam", "-ttl-controller"], list(KNOWN), id="without those that are not here"),
        pytest.param(["-job", "job", "*"], ["deployment-controller", "replicaset-controller"], id="first no, then yes"),
        pytest.param(["job", "-job"], ["job-controller"], id="first yes, then no"),
    ],
)
def test_which_controllers_are_meant(typed: list[str], names: list[str]) -> None:
    assert enabled_names(typed, KNOWN) == names


@pytest.mark.parametrize("typed", ["deploymnt", "-deploymnt"])
def test_an_unknown_controller_is_rejected(typed: str) -> None:
    with pytest.raises(SettingError, match="there is no controller 'deploymnt'; there are deployment-controller, job"):
        enabled_names([typed], KNOWN)


def test_an_enabled_controller_that_is_not_implemented_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    assert enabled_names(["*", "bootstrapsigner", "-nodeipam"], KNOWN) == list(KNOWN)
    assert caplog.messages == ["controller bootstrap-signer-controller is not implemented and is skipped"]


@pytest.mark.parametrize("enabled", [("*",), ("garbage-collector-controller", "job-controller")])
def test_the_garbage_collector_is_switched_off_by_its_flag(enabled: tuple[str, ...]) -> None:
    settings = ControllerSettings(enable_garbage_collector=False)
    manager = ControllerManager(NO_CLIENT, VirtualClock(), Entropy(2), settings, enabled)
    names = {controller.name for controller in manager.controllers}
    assert "garbage-collector-controller" not in names
    assert "job-controller" in names


def test_no_controller_is_both_here_and_not_here() -> None:
    assert not NOT_IMPLEMENTED & CONTROLLERS.keys()


def test_each_old_name_stands_for_a_name_of_today() -> None:
    assert set(OLD_NAMES.values()) <= NOT_IMPLEMENTED | CONTROLLERS.keys()


# --- Which kinds there are to ask for --------------------------------------------------------------------------------


NAMES = DefinitionNames(plural="widgets", kind="Widget")


def definition(
    *, accepted: bool = True, scope: str = "Namespaced", versions: str = "v1beta1 v1!", revision: str = "1"
) -> CustomResourceDefinition:
    """Versions: `v2-` is not served, `v1!` is the one that is stored."""
    return CustomResourceDefinition(
        metadata=ObjectMeta(name="widgets.example.com", uid="u", resource_version=revision),
        spec=CustomResourceDefinitionSpec(
            group="example.com",
            scope=scope,
            names=NAMES,
            versions=tuple(
                DefinitionVersion(name=text.rstrip("!-"), served=not text.endswith("-"), storage=text.endswith("!"))
                for text in versions.split()
            ),
        ),
        status=CustomResourceDefinitionStatus(
            conditions=(Condition(type="NamesAccepted", status="True" if accepted else "False"),),
            accepted_names=NAMES if accepted else DefinitionNames(),
        ),
    )


def test_each_served_version_is_a_kind_the_stored_one_first() -> None:
    kinds = kinds_of(definition(versions="v1alpha1- v1beta1 v1!"))
    assert [kind.api_version for kind in kinds] == ["example.com/v1", "example.com/v1beta1"]
    assert (kinds[0].kind, kinds[0].plural, kinds[0].is_namespaced) == ("Widget", "widgets", True)
    assert kinds[0].key("ns", "w") == "/registry/example.com/widgets/ns/w"


def test_a_definition_that_is_not_accepted_has_no_kinds() -> None:
    assert kinds_of(definition(accepted=False)) == ()


def test_a_kind_of_the_cluster_has_no_namespace() -> None:
    assert not kinds_of(definition(scope="Cluster"))[0].is_namespaced


def test_kinds_come_and_go_with_their_definitions() -> None:
    informer: Informer[CustomResourceDefinition] = Informer("definitions")
    kinds = ServedKinds("test", informer)
    changes: list[int] = []
    kinds.on_change(lambda: changes.append(len(list(kinds.custom()))))
    assert kinds.find("v1", "Pod") is POD
    assert kinds.find("example.com/v1", "Widget") is None
    informer.apply(Change.ADDED, definition(accepted=False))
    informer.apply(Change.MODIFIED, definition(revision="2"))
    found = kinds.find("example.com/v1beta1", "Widget")
    assert found is not None
    assert not kinds.is_built_in(found)
    informer.apply(Change.MODIFIED, definition(revision="3"))
    assert kinds.find("example.com/v1beta1", "Widget") is found
    informer.apply(Change.DELETED, definition(revision="4"))
    assert kinds.find("example.com/v1", "Widget") is None
    assert changes == [0, 1, 0]
