"""RBAC: rules that a user holds by bindings; the index gives the same results as a search of all bindings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.document import Document
from mooring.apiserver.access import rbac
from mooring.apiserver.access.authorization import Attributes, rules_of
from mooring.apiserver.access.rbac import MissingRoleError, RoleAuthorizer, RoleReference, UnknownReferenceKindError
from mooring.serving.users import User, service_account_username
from tests.apiserver.access.builders import authorizer, binding, may, put, request_attributes, role, user

READ_PODS = [may("get list", "pods")]
READER = role(READ_PODS, "reader", "web")
CLUSTER_READER = role(READ_PODS, "reader")
ROBOT = "system:serviceaccount:web:robot"


@pytest.mark.parametrize(
    ("documents", "who", "request_text", "reason"),
    [
        pytest.param(
            [READER, binding("User anna", to="Role reader", namespace="web")],
            user("anna"),
            "list pods in web",
            'RBAC: allowed by RoleBinding "b/web" of Role "reader" to User "anna"',
            id="a user, in the role's namespace",
        ),
        pytest.param(
            [READER, binding("Group devs", to="Role reader", namespace="web")],
            user("anna", "ops", "devs"),
            "list pods in web",
            'RBAC: allowed by RoleBinding "b/web" of Role "reader" to Group "devs"',
            id="a group",
        ),
        pytest.param(
            [READER, binding("ServiceAccount robot", to="Role reader", namespace="web")],
            user(ROBOT),
            "get pods p in web",
            'RBAC: allowed by RoleBinding "b/web" of Role "reader" to ServiceAccount "robot/web"',
            id="a service account of the binding's namespace",
        ),
        pytest.param(
            [
                role(READ_PODS, "reader", "shop"),
                binding("ServiceAccount robot/web", to="Role reader", namespace="shop"),
            ],
            user(ROBOT),
            "get pods p in shop",
            'RBAC: allowed by RoleBinding "b/shop" of Role "reader" to ServiceAccount "robot/web"',
            id="a service account of another namespace",
        ),
        pytest.param(
            [CLUSTER_READER, binding("User anna", to="ClusterRole reader")],
            user("anna"),
            "list pods",
            'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to User "anna"',
            id="a cluster-wide binding, all namespaces",
        ),
        pytest.param(
            [CLUSTER_READER, binding("User anna", to="ClusterRole reader")],
            user("anna"),
            "list pods in web",
            'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to User "anna"',
            id="a cluster-wide binding, one namespace",
        ),
        pytest.param(
            [CLUSTER_READER, binding("User anna", to="ClusterRole reader", namespace="web")],
            user("anna"),
            "list pods in web",
            'RBAC: allowed by RoleBinding "b/web" of ClusterRole "reader" to User "anna"',
            id="a role binding of a cluster role",
        ),
        pytest.param(
            [CLUSTER_READER, binding("User bob", "Group devs", "User anna", to="ClusterRole reader")],
            user("anna", "devs"),
            "list pods",
            'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to Group "devs"',
            id="the first matching subject is named",
        ),
        pytest.param(
            [role([may("get", paths="/healthz")], "h"), binding("Group system:unauthenticated", to="ClusterRole h")],
            user("system:anonymous", "system:unauthenticated"),
            "get /healthz",
            'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "h" to Group "system:unauthenticated"',
            id="a path",
        ),
    ],
)
def test_the_reason_of_an_allowed_request_names_the_binding(
    documents: list[Document], who: User, request_text: str, reason: str
) -> None:
    decision = authorizer(*documents).authorize(request_attributes(who, request_text))
    assert (decision.is_allowed, decision.reason) == (True, reason)


@pytest.mark.parametrize(
    ("documents", "who", "request_text", "reason"),
    [
        pytest.param([], user("anna"), "list pods in web", "", id="no bindings"),
        pytest.param(
            [READER, binding("User anna", to="Role reader", namespace="web")],
            user("anna"),
            "list pods in shop",
            "",
            id="another namespace",
        ),
        pytest.param(
            [READER, binding("User anna", to="Role reader", namespace="web")],
            user("anna"),
            "list pods",
            "",
            id="a role binding, all namespaces",
        ),
        pytest.param(
            [CLUSTER_READER, binding("ServiceAccount robot", to="ClusterRole reader")],
            user(ROBOT),
            "list pods",
            "",
            id="a cluster-wide binding of a service account without namespace",
        ),
        pytest.param(
            [CLUSTER_READER, binding("Robot anna", to="ClusterRole reader")],
            user("anna"),
            "list pods",
            "",
            id="a subject of an unknown kind",
        ),
        pytest.param(
            [CLUSTER_READER, binding("User devs", to="ClusterRole reader")],
            user("anna", "devs"),
            "list pods",
            "",
            id="a user subject with the name of a group",
        ),
        pytest.param(
            [binding("User anna", to="Role reader", namespace="web")],
            user("anna"),
            "list pods in web",
            'RBAC: role.rbac.authorization.k8s.io "reader" not found',
            id="a missing role",
        ),
        pytest.param(
            [
                binding("User anna", to="ClusterRole a", name="1"),
                binding("User anna", to="ClusterRole a", name="2"),
                binding("User anna", to="ClusterRole c", name="3"),
                binding("User anna", to="Thing c", name="4"),
            ],
            user("anna"),
            "list pods in web",
            'RBAC: [clusterrole.rbac.authorization.k8s.io "a" not found, '
            'clusterrole.rbac.authorization.k8s.io "c" not found, unsupported role reference kind: "Thing"]',
            id="several missing roles, without duplicates",
        ),
        pytest.param(
            [CLUSTER_READER, binding("User anna", to="ClusterRole missing")],
            user("bob"),
            "list pods",
            "",
            id="a missing role bound to another user",
        ),
    ],
)
def test_the_reason_of_a_rejected_request_names_missing_roles(
    documents: list[Document], who: User, request_text: str, reason: str
) -> None:
    decision = authorizer(*documents).authorize(request_attributes(who, request_text))
    assert (decision.is_allowed, decision.reason) == (False, reason)


def test_a_missing_role_is_ignored_if_another_rule_allows() -> None:
    roles = authorizer(
        CLUSTER_READER,
        binding("User anna", to="ClusterRole missing", name="a"),
        binding("User anna", to="ClusterRole reader", name="b"),
    )
    assert roles.authorize(request_attributes("anna", "list pods")).is_allowed


def test_changes_of_roles_and_bindings_apply_immediately() -> None:
    roles = RoleAuthorizer()
    question = request_attributes("anna", "list pods in web")
    answers = [roles.authorize(question).is_allowed]
    put(roles, READER)
    put(roles, binding("User anna", to="Role reader", namespace="web"))
    answers.append(roles.authorize(question).is_allowed)
    put(roles, role([may("get", "secrets")], "reader", "web"))
    answers.append(roles.authorize(question).is_allowed)
    put(roles, READER)
    answers.append(roles.authorize(question).is_allowed)
    put(roles, binding("User bob", to="Role reader", namespace="web"))
    answers.append(roles.authorize(question).is_allowed)
    put(roles, binding("User anna", to="Role reader", namespace="web"))
    roles.remove("roles", "web", "reader")
    answers.append(roles.authorize(question).is_allowed)
    put(roles, READER)
    roles.remove("rolebindings", "web", "b")
    answers.append(roles.authorize(question).is_allowed)
    assert answers == [False, True, False, True, False, False, False]


def test_remove_of_an_unknown_object_is_ignored() -> None:
    roles = RoleAuthorizer()
    for resource in ("roles", "rolebindings", "clusterroles", "clusterrolebindings"):
        roles.remove(resource, "web", "x")
    with pytest.raises(AssertionError, match="pods are neither roles nor bindings"):
        roles.put("pods", "web", "x", {})
    with pytest.raises(AssertionError, match="pods are neither roles nor bindings"):
        roles.remove("pods", "web", "x")


def _aggregated(name: str, label: str, labels: Document | None = None) -> Document:
    aggregated = role([may("get", "leftovers")], name, labels=labels)
    aggregated["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}
    return aggregated


def test_a_cluster_role_aggregates_others_by_label() -> None:
    roles = authorizer(
        _aggregated("edit", "to-edit"),
        _aggregated("view", "to-view", {"to-edit": "true"}),
        role([may("get", "pods")], "some", labels={"to-view": "true"}),
        role([may("update", "pods")], "other", labels={"to-edit": "true"}),
        binding("User anna", to="ClusterRole edit"),
    )
    assert roles.authorize(request_attributes("anna", "update pods p")).is_allowed
    assert roles.authorize(request_attributes("anna", "get pods p")).is_allowed  # by way of view
    assert not roles.authorize(request_attributes("anna", "get leftovers p")).is_allowed  # its own rules are replaced
    put(roles, role([may("get", "widgets")], "new", labels={"to-view": "true"}))
    assert roles.authorize(request_attributes("anna", "get widgets w")).is_allowed


def test_cluster_roles_that_aggregate_each_other_have_the_rules_of_both() -> None:
    roles = authorizer(
        _aggregated("a", "to-a", {"to-b": "true"}),
        _aggregated("b", "to-b", {"to-a": "true"}),
        role([may("get", "pods")], "some", labels={"to-a": "true"}),
        role([may("get", "nodes")], "other", labels={"to-b": "true"}),
    )
    for name in ("a", "b"):
        rules = roles.rules_of_reference(RoleReference("ClusterRole", name), "")
        assert {rule.resources for rule in rules} == {("pods",), ("nodes",)}


def test_an_invalid_aggregation_selector_leaves_the_rules_unchanged() -> None:
    broken = role([may("get", "pods")], "broken")
    broken["aggregationRule"] = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Nonsense"}]}]}
    roles = authorizer(broken)
    assert roles.rules_of_reference(RoleReference("ClusterRole", "broken"), "") == rules_of(broken)


def test_rules_for_a_user_combine_all_bindings() -> None:
    roles = authorizer(
        CLUSTER_READER,
        role([may("get", "secrets")], "secrets", "web"),
        binding("User anna", to="ClusterRole reader"),
        binding("Group devs", to="Role secrets", namespace="web"),
        binding("Group devs", to="Role missing", namespace="web", name="c"),
    )
    held = roles.rules_for(user("anna", "devs"), "web")
    assert [rule.resources for rule in held.rules] == [("pods",), ("secrets",)]
    assert held.errors == ('role.rbac.authorization.k8s.io "missing" not found',)
    assert [rule.resources for rule in roles.rules_for(user("anna", "devs"), "").rules] == [("pods",)]


def test_rules_of_reference_returns_the_rules_or_raises() -> None:
    roles = authorizer(READER)
    assert roles.rules_of_reference(RoleReference("Role", "reader"), "web") == rules_of(READER)
    with pytest.raises(MissingRoleError, match=r'^role\.rbac.authorization.k8s.io "reader" not found$'):
        roles.rules_of_reference(RoleReference("Role", "reader"), "shop")
    with pytest.raises(UnknownReferenceKindError):
        roles.rules_of_reference(RoleReference("Thing", "reader"), "web")


def test_the_grants_cache_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac, "REMEMBERED_USERS_MAX", 4)
    monkeypatch.setattr(rbac, "REMEMBERED_QUESTIONS_MAX", 4)
    roles = authorizer(CLUSTER_READER, binding("Group devs", to="ClusterRole reader"))
    for number in range(20):
        assert roles.authorize(request_attributes(user(f"u{number}", "devs"), "list pods")).is_allowed
        assert not roles.authorize(request_attributes(user("anna", "devs"), f"list things{number}")).is_allowed
    assert len(roles._grants) <= 4
    assert all(len(grants.candidates) <= 4 for grants in roles._grants.values())


# --- the index and a search of all bindings give the same results ---------------------------------------------

_names = st.sampled_from(["a", "b"])
_spaces = st.sampled_from(["", "x", "y"])


def _some(*choices: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(choices), min_size=1, max_size=2)


_rules = st.one_of(
    st.builds(
        lambda verbs, groups, resources, names: {
            "verbs": verbs,
            "apiGroups": groups,
            "resources": resources,
            "resourceNames": names,
        },
        _some("get", "list", "*"),
        _some("", "apps", "*"),
        _some("pods", "pods/log", "*/log", "*", "nodes"),
        st.lists(_names, max_size=1),
    ),
    st.builds(
        lambda verbs, urls: {"verbs": verbs, "nonResourceURLs": urls}, _some("get", "*"), _some("/a", "/a/*", "*")
    ),
)
_roles = st.builds(lambda rules, name, space: role(rules, name, space), st.lists(_rules, max_size=2), _names, _spaces)
_subjects = st.sampled_from(["User a", "User b", "Group a", "Group b", "ServiceAccount a", "ServiceAccount a/y"])
_bindings = st.builds(
    lambda subjects, to, name, space: binding(*subjects, to=to, name=name, namespace=space),
    st.lists(_subjects, max_size=2),
    st.sampled_from(["Role a", "Role b", "ClusterRole a", "ClusterRole b"]),
    _names,
    _spaces,
)
_users = st.builds(
    lambda name, groups: User(name, groups=tuple(groups)),
    st.sampled_from(["a", "b", "system:serviceaccount:x:a", "system:serviceaccount:y:a"]),
    st.lists(_names, unique=True, max_size=2),
)
_requests = st.one_of(
    st.builds(
        lambda who, verb, space, group, resource, name: Attributes(
            who, verb, namespace=space, api_group=group, resource=resource[0], subresource=resource[1], name=name
        ),
        _users,
        st.sampled_from(["get", "list"]),
        _spaces,
        st.sampled_from(["", "apps"]),
        st.sampled_from([("pods", ""), ("pods", "log"), ("nodes", "")]),
        st.sampled_from(["", "a", "b"]),
    ),
    st.builds(
        lambda who, path: Attributes(who, "get", path=path, is_resource_request=False),
        _users,
        st.sampled_from(["/a", "/a/b", "/b"]),
    ),
)


def _naively_allowed(documents: dict[tuple[str, str, str], Document], asked: Attributes) -> bool:
    """Check every binding and every rule, as Kubernetes does."""
    for (kind, namespace, _), found in documents.items():
        if not kind.endswith("Binding") or namespace not in ("", asked.namespace):
            continue
        if not any(_is_meant(subject, asked.user, namespace) for subject in found["subjects"]):
            continue
        reference = found["roleRef"]
        home = namespace if reference["kind"] == "Role" else ""
        bound = documents.get((reference["kind"], home, reference["name"]), {})
        if any(rule.allows(asked) for rule in rules_of(bound)):
            return True
    return False


def _is_meant(subject: Document, who: User, namespace: str) -> bool:
    if subject["kind"] == "User":
        return bool(who.name == subject["name"])
    if subject["kind"] == "Group":
        return subject["name"] in who.groups
    home = subject.get("namespace") or namespace
    return bool(home) and who.name == service_account_username(home, subject["name"])


@given(
    st.lists(st.tuples(st.booleans(), st.one_of(_roles, _bindings)), max_size=12),
    st.lists(_requests, min_size=1, max_size=6),
)
def test_the_index_gives_the_results_of_a_search_of_all_bindings(
    changes: list[tuple[bool, Document]], requests: list[Attributes]
) -> None:
    roles = RoleAuthorizer()
    documents: dict[tuple[str, str, str], Document] = {}
    for is_removed, document in changes:
        kind, metadata = document["kind"], document["metadata"]
        key = (kind, metadata.get("namespace", ""), metadata["name"])
        if is_removed:
            documents.pop(key, None)
            roles.remove(f"{kind.lower()}s", key[1], key[2])
        else:
            documents[key] = document
            put(roles, document)
        for asked in requests:
            assert roles.authorize(asked).is_allowed is _naively_allowed(documents, asked)
