"""What was worked out for one object holds for its twin: names and times are exchanged, and nothing else."""

from __future__ import annotations

import pytest

from mooring.apiserver.twins import Question, Twins, question_of

ONE = b'{"name":"web-1","uid":"11111111-1111-4111-8111-111111111111","at":"2026-01-01T00:00:00Z"}'
OTHER = b'{"name":"web-2","uid":"22222222-2222-4222-8222-222222222222","at":"2026-01-02T03:04:05Z"}'
STORED = (
    b'{"name":"web-1","uid":"11111111-1111-4111-8111-111111111111",'
    b'"owned":{"k:{\\"uid\\":\\"11111111-1111-4111-8111-111111111111\\"}":{}},"seen":"2026-01-01T00:00:00Z"}'
)
STORED_OTHER = (
    b'{"name":"web-2","uid":"22222222-2222-4222-8222-222222222222",'
    b'"owned":{"k:{\\"uid\\":\\"22222222-2222-4222-8222-222222222222\\"}":{}},"seen":"2026-01-02T03:04:05Z"}'
)


def ask(text: bytes, *names: bytes) -> Question:
    return question_of("write", [text], names or (text.split(b'"')[3],))


def test_a_twin_gets_its_own_names_and_times() -> None:
    twins = Twins()
    twins.learn(ask(ONE), STORED, ())
    template = twins.find(ask(OTHER))
    assert template is not None
    assert template.filled(ask(OTHER)) == STORED_OTHER


@pytest.mark.parametrize(
    ("one", "other", "are_twins"),
    [
        pytest.param(b'{"ip":"10.0.0.1"}', b'{"ip":"10.0.9.9"}', True, id="another address"),
        pytest.param(b'{"ip":"10.0.0.1"}', b'{"ip":"10.0.0.256"}', False, id="no address at all"),
        pytest.param(b'{"ip":"10.0.0.1"}', b'{"ip":"10.0.0.01"}', False, id="an address with a leading zero"),
        pytest.param(b'{"cpu":"100m"}', b'{"cpu":"200m"}', False, id="another amount"),
        pytest.param(b'{"restarts":0}', b'{"restarts":1}', False, id="another number"),
        pytest.param(
            b'{"a":"2026-01-01T00:00:00Z","b":"2026-01-01T00:00:00Z"}',
            b'{"a":"2026-01-01T00:00:00Z","b":"2026-01-01T00:00:01Z"}',
            False,
            id="times that were equal and are not any more",
        ),
        pytest.param(
            b'{"a":"2026-01-01T00:00:00Z","b":"2026-01-01T00:00:01Z"}',
            b'{"a":"2026-01-01T00:00:09Z","b":"2026-01-01T00:00:02Z"}',
            False,
            id="times in another order",
        ),
        pytest.param(
            b'{"a":"2026-01-01T00:00:00Z","b":"2026-01-01T00:00:00.500000Z"}',
            b'{"a":"2026-01-01T00:00:01Z","b":"2026-01-01T00:00:00.500000Z"}',
            False,
            id="a fraction of a second behind, and before",
        ),
        pytest.param(
            b'{"a":"2026-01-01T00:00:00Z","b":"10.0.0.1"}',
            b'{"a":"2027-01-01T00:00:00Z","b":"172.16.0.1"}',
            True,
            id="values of different sorts have no order",
        ),
        pytest.param(b'{"note":"at 10.0.0.1"}', b'{"note":"at 10.0.0.2"}', False, id="an address within a text"),
        pytest.param(
            b'{"id":"mooring://%b"}' % (b"a" * 64), b'{"id":"mooring://%b"}' % (b"b" * 64), True, id="containers"
        ),
    ],
)
def test_who_is_a_twin(one: bytes, other: bytes, are_twins: bool) -> None:
    assert (question_of("write", [one], ()).key == question_of("write", [other], ()).key) is are_twins


def test_a_name_within_a_longer_one_is_left_alone() -> None:
    twins = Twins()
    twins.learn(ask(b'{"name":"web"}'), b'{"name":"web","app":"web-shop"}', ())
    question = ask(b'{"name":"db"}')
    template = twins.find(question)
    assert template is not None
    assert template.filled(question) == b'{"name":"db","app":"web-shop"}'


def test_what_only_the_server_gives_is_filled_in() -> None:
    twins, question = Twins(), ask(b'{"generateName":"web-"}')
    fresh = b"33333333-3333-4333-8333-333333333333"
    twins.learn(question, b'{"name":"web-a","uid":"%b"}' % fresh, (), [fresh], [b"web-a"])
    template = twins.find(question)
    assert template is not None
    assert template.filled(question, [b"4" * 36], [b"web-b"]) == b'{"name":"web-b","uid":"%b"}' % (b"4" * 36)


def test_values_from_elsewhere_are_not_learnt() -> None:
    twins = Twins()
    twins.learn(ask(b'{"name":"web"}'), b'{"name":"web","ip":"10.0.0.1"}', ())
    assert twins.find(ask(b'{"name":"web"}')) is None


def test_the_oldest_is_forgotten() -> None:
    twins = Twins(templates_max=2)
    for number in range(3):
        text = b'{"number":%d}' % number
        twins.learn(question_of("write", [text], ()), text, ())
    assert len(twins) == 2
    assert twins.find(question_of("write", [b'{"number":0}'], ())) is None
