"""A body that comes again is stored as the registry would store it, and the registry is not asked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

import msgspec
import pytest

from mooring.api.kinds import LIMIT_RANGE, NAMESPACE, POD, PRIORITY_CLASS, RESOURCE_QUOTA, Kind
from mooring.apiserver.access.users import User
from mooring.apiserver.call import Call, FieldValidation
from mooring.apiserver.desk import Desk
from mooring.apiserver.inside import InsideClient
from mooring.apiserver.registry import create as creating
from mooring.apiserver.registry.create import Created
from mooring.apiserver.registry.parts import Parts
from mooring.apiserver.repeats import Repeats
from mooring.client.errors import ForbiddenError
from mooring.client.interface import PatchForm
from mooring.kit.clock import VIRTUAL_WALL_S, format_rfc3339
from mooring.kit.entropy import Entropy
from tests.apiserver.desks import with_desk
from tests.client.objects import Body, at, pod, read, text_at

NS = "default"
CHANCE = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=web-)\w{5}|20\d\d-[0-9-]+T[0-9:]+Z|Version":"\d+')
REPLICA = pod("", labels={"app": "web"}, generateName="web-")


class Sender:
    """Sends bodies as the door does, and counts how often the registry is asked."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.repeats = Repeats(desk.store, desk.parts)
        self.asked = 0
        self.warnings: list[str] = []

    async def send(
        self, body: Body, namespace: str = NS, manager: str = "tester", *, is_dry_run: bool = False
    ) -> bytes:
        """What the client gets."""
        desk, data = self.desk, msgspec.json.encode(body)
        now_s = desk.clock.wall_s()
        call = Call(
            verb="create",
            kind=POD,
            user=User("tester"),
            now_s=now_s,
            now=format_rfc3339(int(now_s)),
            namespace=namespace,
            field_manager=manager,
            field_validation=FieldValidation.WARN,
            is_dry_run=is_dry_run,
        )

        async def long_way(parts: Parts) -> Created:
            self.asked += 1
            resource = desk.resources.of_kind(POD)
            return await creating.create(
                parts, resource, call, desk.body_reader(resource, call, data, "application/json")(None)
            )

        made = await self.repeats.create(call, data, long_way)
        self.warnings = call.warnings
        return made if isinstance(made, bytes) else made.answer or msgspec.json.encode(made.document)


def test_a_repeat_is_what_the_registry_would_have_stored() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        sender = Sender(desk)
        answers = []
        for _ in range(5):
            await desk.clock.wait(1.5)
            answers.append(await sender.send(REPLICA))
        assert sender.asked == 3, "noted, learnt, proven"
        assert len({CHANCE.sub("?", answer.decode()) for answer in answers}) == 1
        for path in ("metadata.name", "metadata.uid", "metadata.creationTimestamp", "metadata.resourceVersion"):
            assert len({text_at(answer, path) for answer in answers}) == 5, path
        for answer in answers:
            assert await client.get(POD, NS, text_at(answer, "metadata.name")) == answer
            [entry] = cast("list[dict[str, str]]", at(answer, "metadata.managedFields"))
            assert entry["time"] == text_at(answer, "metadata.creationTimestamp")

    with_desk(scenario)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(pod("web-1"), id="a name of its own"),
        pytest.param(
            {**REPLICA, "spec": {**REPLICA["spec"], "colour": "red"}},  # type: ignore[dict-item]
            id="a field that is warned of",
        ),
        pytest.param(
            pod("", generateName="web-", annotations={"since": format_rfc3339(VIRTUAL_WALL_S)}),
            id="the very time, by chance",
        ),
    ],
)
def test_the_registry_is_asked_each_time_for(body: Body) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        sender = Sender(desk)
        for expected in (1, 2, 3):
            made = await sender.send(body)
            assert sender.asked == expected
            await client.delete(POD, NS, text_at(made, "metadata.name"))

    with_desk(scenario)


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(lambda sender: sender.send(REPLICA, manager="other"), id="another manager"),
        pytest.param(lambda sender: sender.send(REPLICA, is_dry_run=True), id="a dry run"),
        pytest.param(lambda sender: sender.send({**REPLICA, "kind": "Pod", "apiVersion": "v1", "x": 1}), id="a letter"),
    ],
)
def test_another_call_is_no_repeat(send: Callable[[Sender], object]) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        sender = Sender(desk)
        for _ in range(4):
            await sender.send(REPLICA)
        await send(sender)  # type: ignore[misc]
        assert sender.asked == 4

    with_desk(scenario)


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        pytest.param(
            LIMIT_RANGE,
            {"metadata": {"name": "limits"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "100m"}}]}},
            ("spec.containers", "100m"),
            id="a limit range",
        ),
        pytest.param(
            PRIORITY_CLASS,
            {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True},
            ("spec.priority", "7"),
            id="a default priority",
        ),
    ],
)
def test_what_is_new_around_a_repeat_counts(kind: Kind, body: Body, expected: tuple[str, str]) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        sender = Sender(desk)
        for _ in range(4):
            await sender.send(REPLICA)
        await client.create(kind, NS if kind.is_namespaced else "", body)
        for _ in range(3):
            assert expected[1] in str(at(await sender.send(REPLICA), expected[0]))
        assert sender.asked == 5

    with_desk(scenario)


def test_quotas_are_charged_for_each() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        sender, hard = Sender(desk), {"pods": "3"}
        for _ in range(3):
            await sender.send(REPLICA)
        await client.create(RESOURCE_QUOTA, NS, {"metadata": {"name": "few"}, "spec": {"hard": hard}})
        counted: Body = {"status": {"hard": hard, "used": {"pods": "0"}}}
        await client.patch(RESOURCE_QUOTA, NS, "few", counted, form=PatchForm.MERGE, subresource="status")
        for _ in range(3):
            await sender.send(REPLICA)
        with pytest.raises(ForbiddenError, match="exceeded quota: few"):
            await sender.send(REPLICA)

    with_desk(scenario)


def test_nothing_comes_into_a_namespace_that_goes() -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        sender = Sender(desk)
        await client.create(NAMESPACE, "", {"metadata": {"name": "short-lived", "finalizers": ["example.com/wait"]}})
        for _ in range(3):
            await sender.send(REPLICA, "short-lived")
        await client.delete(NAMESPACE, "", "short-lived")
        with pytest.raises(ForbiddenError, match="because it is being terminated"):
            await sender.send(REPLICA, "short-lived")

    with_desk(scenario)


def test_a_name_that_is_taken_is_not_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(desk: Desk, client: InsideClient) -> None:
        sender = Sender(desk)
        for _ in range(2):
            await sender.send(REPLICA)
        suffixes = iter(["bbbbb", "bbbbb", "ccccc"])
        monkeypatch.setattr(Entropy, "suffix", lambda self: next(suffixes))
        names = [text_at(read(await sender.send(REPLICA)), "metadata.name") for _ in range(2)]
        assert names == ["web-bbbbb", "web-ccccc"]

    with_desk(scenario)
