"""The contract of clients: creating, getting and listing."""

from __future__ import annotations

import pytest

from mooring.api.kinds import CONFIG_MAP, NODE, POD, REPLICA_SET
from mooring.client.errors import AlreadyExistsError, BadRequestError, InvalidError, NotFoundError, StatusError
from mooring.client.interface import Client, Selection
from tests.client.contract_play import NS, Play, PlayedContract, create_all, names
from tests.client.objects import Body, at, config_map, node, pod, text_at


class ReadingContract(PlayedContract):
    def test_a_created_object_has_an_identity(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            raw = await client.create(POD, NS, pod("web", labels={"app": "web"}))
            metadata = at(raw, "metadata")
            assert isinstance(metadata, dict)
            assert (metadata["name"], metadata["namespace"], metadata["labels"]) == ("web", NS, {"app": "web"})
            assert metadata["generation"] == 1
            for field in ("uid", "resourceVersion", "creationTimestamp"):
                assert metadata[field]
            assert await client.get(POD, NS, "web") == raw

        play(scenario)

    def test_what_a_client_says_of_the_systems_fields_is_ignored(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            body = config_map(uid="mine", creationTimestamp="2001-01-01T00:00:00Z")
            raw = await client.create(CONFIG_MAP, NS, body)
            assert text_at(raw, "metadata.uid") != "mine"
            assert text_at(raw, "metadata.creationTimestamp") > "2020"

        play(scenario)

    def test_a_name_is_generated_if_asked_for(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            made = [await client.create(POD, NS, pod("", generateName="web-")) for _ in range(3)]
            found = names(made)
            assert len(set(found)) == 3
            assert all(name.startswith("web-") and len(name) == 9 for name in found)

        play(scenario)

    def test_a_cluster_scoped_object_has_no_namespace(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            raw = await client.create(NODE, "", node("n1"))
            assert at(raw, "metadata.namespace") is None
            assert await client.get(NODE, "", "n1") == raw

        play(scenario)

    def test_fields_that_nobody_here_knows_are_kept(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            body = config_map(
                data={"a": "ü", "b": 'say "metadata":{} twice'}, annotations={"x/y": '"metadata":{"z":1}'}
            )
            raw = await client.create(CONFIG_MAP, NS, body)
            assert at(raw, "data") == body["data"]
            assert at(raw, "metadata.annotations") == {"x/y": '"metadata":{"z":1}'}

        play(scenario)

    @pytest.mark.parametrize(
        ("namespace", "body", "error", "words"),
        [
            pytest.param(
                NS, config_map(), AlreadyExistsError, 'configmaps "settings" already exists', id="there already"
            ),
            pytest.param(
                NS,
                config_map(""),
                InvalidError,
                'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
                id="without a name",
            ),
            pytest.param(
                NS,
                config_map("x", namespace="kube-system"),
                BadRequestError,
                "the namespace of the provided object does not match the namespace sent on the request",
                id="into another namespace than it says",
            ),
        ],
    )
    def test_what_cannot_be_created(
        self, play: Play, namespace: str, body: Body, error: type[StatusError], words: str
    ) -> None:
        async def scenario(client: Client) -> None:
            await client.create(CONFIG_MAP, NS, config_map())
            with pytest.raises(error) as refusal:
                await client.create(CONFIG_MAP, namespace, body)
            assert str(refusal.value) == words

        play(scenario)

    def test_what_is_not_there_is_not_found(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            with pytest.raises(NotFoundError) as refusal:
                await client.get(REPLICA_SET, NS, "web")
            assert str(refusal.value) == 'replicasets.apps "web" not found'
            assert refusal.value.details["name"] == "web"

        play(scenario)

    @pytest.mark.parametrize(
        ("selection", "found"),
        [
            pytest.param(Selection(NS), ["a", "b", "c"], id="all of a namespace"),
            pytest.param(Selection("kube-system"), ["d"], id="another namespace"),
            pytest.param(Selection(NS, labels="app=web"), ["a", "c"], id="by a label"),
            pytest.param(Selection(NS, labels="app=web,tier notin (back)"), ["a"], id="by two"),
            pytest.param(Selection(NS, labels="!app"), ["b"], id="by an absent label"),
            pytest.param(Selection(NS, fields="metadata.name=b"), ["b"], id="by name"),
            pytest.param(
                Selection(fields="metadata.name!=b,metadata.namespace=default"), ["a", "c"], id="by namespace"
            ),
            pytest.param(Selection(NS, fields="spec.nodeName="), ["a", "b"], id="pods without a node"),
            pytest.param(Selection(NS, fields="spec.nodeName==n1"), ["c"], id="pods of a node"),
            pytest.param(Selection(NS, fields="spec.schedulerName=other"), ["b"], id="pods of a scheduler"),
            pytest.param(
                Selection(NS, fields="status.phase!=Succeeded,status.phase!=Failed"), ["a", "b", "c"], id="alive"
            ),
            pytest.param(Selection(NS, labels="app=web", fields="spec.nodeName="), ["a"], id="by labels and fields"),
        ],
    )
    def test_a_selection_is_listed_in_the_order_of_names(
        self, play: Play, selection: Selection, found: list[str]
    ) -> None:
        async def scenario(client: Client) -> None:
            await client.create(POD, "kube-system", pod("d"))
            revision = await create_all(
                client,
                pod("c", labels={"app": "web", "tier": "back"}, on="n1"),
                pod("b", scheduler="other"),
                pod("a", labels={"app": "web"}),
            )
            listing = await client.list(POD, selection)
            assert names(listing.items) == found
            assert (listing.continue_token, listing.remaining) == ("", None)
            assert int(listing.revision) >= int(revision)

        play(scenario)

    @pytest.mark.parametrize(
        ("selection", "words"),
        [
            pytest.param(Selection(labels="a in"), "found '', expected: '('", id="labels that break off"),
            pytest.param(Selection(fields="spec.nodeName"), "can't understand 'spec.nodeName'", id="fields without ="),
        ],
    )
    def test_a_selection_that_cannot_be_read_is_refused(self, play: Play, selection: Selection, words: str) -> None:
        async def scenario(client: Client) -> None:
            with pytest.raises(BadRequestError):
                await client.list(POD, selection)

        play(scenario)

    def test_pages_are_of_one_moment(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await create_all(client, *(config_map(f"c{number}") for number in range(5)))
            first = await client.list(CONFIG_MAP, Selection(NS), limit=2)
            assert (names(first.items), first.remaining) == (["c0", "c1"], 3)
            await client.delete(CONFIG_MAP, NS, "c3")
            await create_all(client, config_map("c5"))
            second = await client.list(CONFIG_MAP, Selection(NS), limit=2, continue_token=first.continue_token)
            third = await client.list(CONFIG_MAP, Selection(NS), limit=2, continue_token=second.continue_token)
            assert (names(second.items), second.remaining) == (["c2", "c3"], 1)
            assert (names(third.items), third.continue_token) == (["c4"], "")
            assert first.revision == second.revision == third.revision

        play(scenario)

    def test_pages_of_a_selection_do_not_say_how_many_remain(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            await create_all(
                client, *(config_map(f"c{number}", labels={"odd": str(number % 2)}) for number in range(6))
            )
            odd = Selection(NS, labels="odd=1")
            first = await client.list(CONFIG_MAP, odd, limit=2)
            second = await client.list(CONFIG_MAP, odd, limit=2, continue_token=first.continue_token)
            assert (names(first.items), first.remaining) == (["c1", "c3"], None)
            assert (names(second.items), second.continue_token) == (["c5"], "")

        play(scenario)

    def test_a_made_up_continue_token_is_refused(self, play: Play) -> None:
        async def scenario(client: Client) -> None:
            with pytest.raises(BadRequestError):
                await client.list(POD, limit=2, continue_token="made up")

        play(scenario)
