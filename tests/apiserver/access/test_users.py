"""Names of service accounts and nodes are put together and taken apart; everybody is somebody or a stranger."""

from __future__ import annotations

import pytest

from mooring.apiserver.access.users import (
    User,
    anonymous,
    authenticated,
    node_of,
    service_account_groups,
    service_account_of,
    service_account_username,
    with_group,
)


@pytest.mark.parametrize(
    ("username", "account"),
    [
        pytest.param("system:serviceaccount:web:robot", ("web", "robot"), id="an account"),
        pytest.param("system:serviceaccount:web:robot.v2", ("web", "robot.v2"), id="an account with a dot"),
        pytest.param("system:serviceaccount:web:robot:x", None, id="too many parts"),
        pytest.param("system:serviceaccount:web", None, id="too few parts"),
        pytest.param("system:serviceaccount:we.b:robot", None, id="a namespace that is none"),
        pytest.param("system:serviceaccount::robot", None, id="no namespace"),
        pytest.param("system:serviceaccount:web:", None, id="no name"),
        pytest.param(f"system:serviceaccount:{'a' * 64}:robot", None, id="a namespace that is too long"),
        pytest.param("robot", None, id="a person"),
    ],
)
def test_the_account_behind_a_user_name(username: str, account: tuple[str, str] | None) -> None:
    assert service_account_of(username) == account


def test_an_account_has_a_user_name_and_groups() -> None:
    assert service_account_of(service_account_username("web", "robot")) == ("web", "robot")
    assert service_account_groups("web") == ("system:serviceaccounts", "system:serviceaccounts:web")


@pytest.mark.parametrize(
    ("username", "node"),
    [
        ("system:node:n1.example", "n1.example"),
        ("system:node:", None),
        ("system:node:N_1", None),
        ("n1", None),
    ],
)
def test_the_node_behind_a_user_name(username: str, node: str | None) -> None:
    assert node_of(username) == node


@pytest.mark.parametrize(
    ("before", "groups"),
    [
        pytest.param(User("anna", groups=("devs",)), ("devs", "system:authenticated"), id="somebody"),
        pytest.param(
            User("anna", groups=("system:authenticated", "devs")), ("system:authenticated", "devs"), id="named already"
        ),
        pytest.param(User("x", groups=("system:unauthenticated",)), ("system:unauthenticated",), id="named a stranger"),
        pytest.param(anonymous(), ("system:unauthenticated",), id="a stranger"),
    ],
)
def test_the_group_system_authenticated(before: User, groups: tuple[str, ...]) -> None:
    assert authenticated(before).groups == groups


def test_a_group_is_joined_once() -> None:
    joined = with_group(User("anna", groups=("devs",)), "ops")
    assert joined.groups == ("devs", "ops")
    assert with_group(joined, "devs") is joined
