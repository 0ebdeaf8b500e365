"""A continue token holds a key and a revision, and cannot lead out of its folder."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.apiserver.storage.storage import continue_token, read_continue_token
from mooring.client.errors import BadRequestError

PODS = "/registry/pods/"


@given(st.text("abc-.é", min_size=1), st.text("abc-.é", min_size=1), st.integers(1, 2**62))
def test_a_token_leads_back_to_its_key(namespace: str, name: str, revision: int) -> None:
    key = f"{PODS}n{namespace}/p{name}"
    token = continue_token(PODS, key, revision)
    assert token.isascii()
    assert "=" not in token
    assert read_continue_token(PODS, token) == (key, revision)


def test_it_is_the_token_of_kube_apiserver() -> None:
    made = urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":7,"start":"default/web"}').decode().rstrip("=")
    assert continue_token(PODS, f"{PODS}default/web", 7) == made


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("!!!", "continue key is not valid", id="no base64"),
        pytest.param("a", "continue key is not valid", id="a broken length"),
        pytest.param('{"v":1}', "continue key is not valid", id="another shape"),
        pytest.param(
            '{"v":"v9","rv":7,"start":"a"}', "does not recognize this encoded version v9", id="another version"
        ),
        pytest.param(
            '{"v":"meta.k8s.io/v1","rv":0,"start":"a"}', "incorrect encoded start resourceVersion", id="no revision"
        ),
        pytest.param('{"v":"meta.k8s.io/v1","rv":7,"start":""}', "encoded start key empty", id="no key"),
        pytest.param('{"v":"meta.k8s.io/v1","rv":7,"start":"../secrets/a"}', "../secrets/a", id="out of the folder"),
    ],
)
def test_a_made_up_token_is_refused(text: str, words: str) -> None:
    token = urlsafe_b64encode(text.encode()).decode().rstrip("=") if text.startswith("{") else text
    with pytest.raises(BadRequestError) as refusal:
        read_continue_token(PODS, token)
    assert words in str(refusal.value)
