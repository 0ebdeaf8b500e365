"""Strict decoding reports every problem with its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.scheduler.config.load import StrictDecoder, encode_configuration, load_configuration
from mooring.scheduler.config.types import (
    API_VERSION,
    KIND,
    ConfigObject,
    Int32,
    Int64,
    OrDefault,
    Seconds,
    ValueMeaning,
)


class Lamp(ConfigObject):
    name: str
    watts: Int32 = 40


class Ship(ConfigObject):
    name: str
    knots: float = 12.5
    crew: OrDefault[Int64] = 8
    is_moored: bool = True
    lamps: tuple[Lamp, ...] = ()
    best_lamp: Lamp | None = None
    flag_of: Mapping[str, str] = {}
    watch_s: Annotated[Seconds, ValueMeaning.ZERO_IS_DEFAULT] = 14400.0
    papers: bytes = b""
    berth: int = 0


def decoded(data: object) -> tuple[Ship, list[str]]:
    decoder = StrictDecoder()
    ship = decoder.struct(Ship, data)
    return ship, [problem.text for problem in decoder.problems]


def problems_of(data: object) -> list[str]:
    return decoded(data)[1]


def test_everything_is_read() -> None:
    ship, problems = decoded(
        {
            "name": "Ark",
            "knots": 3,
            "crew": 4,
            "isMoored": False,
            "lamps": [{"name": "bow"}, {"name": "stern", "watts": 60}],
            "bestLamp": {"name": "bow"},
            "flagOf": {"home": "NL"},
            "watchS": "4h",
            "papers": "aGFyYm91cg==",
            "berth": 7,
        }
    )
    assert problems == []
    assert ship == Ship(
        name="Ark",
        knots=3.0,
        crew=4,
        is_moored=False,
        lamps=(Lamp(name="bow"), Lamp(name="stern", watts=60)),
        best_lamp=Lamp(name="bow"),
        flag_of={"home": "NL"},
        watch_s=14400.0,
        papers=b"harbour",
        berth=7,
    )


@pytest.mark.parametrize(
    ("data", "ship"),
    [
        pytest.param({}, Ship(name=""), id="what is absent has its default, or is zero"),
        pytest.param(None, Ship(name=""), id="null is absence"),
        pytest.param({"name": None, "knots": None, "bestLamp": None}, Ship(name=""), id="so it is in fields"),
        pytest.param({"crew": 0}, Ship(name="", crew=8), id="a zero is absence where Kubernetes cannot tell"),
        pytest.param({"watchS": "0s"}, Ship(name="", watch_s=14400.0), id="of durations, too"),
        pytest.param({"knots": 0}, Ship(name="", knots=0.0), id="and a zero elsewhere"),
        pytest.param({"lamps": [None]}, Ship(name="", lamps=(Lamp(name=""),)), id="null in a list has nothing set"),
    ],
)
def test_absent_null_and_zero_fields(data: object, ship: Ship) -> None:
    assert decoded(data) == (ship, [])


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        pytest.param({"name": 5}, "name: expected text, found the number 5", id="a number for text"),
        pytest.param({"crew": "x" * 50}, f'crew: expected an integer, found the text "{"x" * 40}…"', id="long text"),
        pytest.param({"crew": True}, "crew: expected an integer, found true", id="true is no number"),
        pytest.param({"crew": 1.5}, "crew: expected an integer, found the number 1.5", id="a fraction is no integer"),
        pytest.param({"knots": False}, "knots: expected a number, found false", id="false is no number"),
        pytest.param(
            {"isMoored": "yes"}, 'isMoored: expected true or false, found the text "yes"', id="text for a bool"
        ),
        pytest.param({"lamps": {}}, "lamps: expected a list, found an object", id="an object for a list"),
        pytest.param({"lamps": "bow"}, 'lamps: expected a list, found the text "bow"', id="text for a list"),
        pytest.param({"lamps": ["bow"]}, 'lamps[0]: expected an object, found the text "bow"', id="text for an object"),
        pytest.param({"bestLamp": []}, "bestLamp: expected an object, found a list", id="a list for an object"),
        pytest.param({"flagOf": {"home": 1}}, "flagOf[home]: expected text, found the number 1", id="inside of a map"),
        pytest.param(
            {"watchS": 4}, 'watchS: expected a duration such as "1m30s", found the number 4', id="a bare number"
        ),
        pytest.param(
            {"watchS": "4"},
            'watchS: expected a duration such as "1m30s": time: missing unit in duration "4"',
            id="a duration without a unit",
        ),
        pytest.param({"papers": "!"}, 'papers: expected base64 text, found the text "!"', id="broken base64"),
        pytest.param(
            {"lamps": [{"watts": 2**31}]},
            "lamps[0].watts: expected an integer between -2147483648 and 2147483647, found the number 2147483648",
            id="too large for 32 bits",
        ),
        pytest.param(
            {"berth": 2**31},
            "berth: expected an integer between -2147483648 and 2147483647, found the number 2147483648",
            id="an integer of an API object has 32 bits",
        ),
        pytest.param([], "the configuration: expected an object, found a list", id="a list for everything"),
        pytest.param(
            {"lamps": [{"Name": "bow"}]},
            'strict decoding error: unknown field "lamps[0].Name"; did you mean "name"?',
            id="a field in capitals",
        ),
        pytest.param(
            {"lamps": [{"zzz": 1}]},
            'strict decoding error: unknown field "lamps[0].zzz"; expected one of "name", "watts"',
            id="a field like no other",
        ),
        pytest.param(
            {5: 1},
            'strict decoding error: unknown field "5"; expected one of "berth", "bestLamp", "crew", "flagOf", '
            '"isMoored", "knots", "lamps", "name", "papers", "watchS"',
            id="a key that is not text",
        ),
    ],
)
def test_what_is_wrong_is_reported(data: object, complaint: str) -> None:
    assert problems_of(data) == [complaint]


def test_everything_is_reported_in_the_order_of_the_file() -> None:
    assert problems_of({"zzz": 1, "crew": "many", "lamps": [{"watts": "x"}, {"wats": 1}]}) == [
        'strict decoding error: unknown field "zzz"; expected one of "berth", "bestLamp", "crew", "flagOf", '
        '"isMoored", "knots", "lamps", "name", "papers", "watchS"',
        'crew: expected an integer, found the text "many"',
        'lamps[0].watts: expected an integer, found the text "x"',
        'strict decoding error: unknown field "lamps[1].wats"; did you mean "watts"?',
    ]


def test_problems_of_a_nested_decoder_have_its_steps() -> None:
    decoder = StrictDecoder("fleet[2]", steps=("decoding .fleet[2]", "reading a ship"))
    decoder.struct(Lamp, {"watts": "x", "zzz": 1})
    decoder.struct(Lamp, [])
    assert [(problem.path, problem.text) for problem in decoder.problems] == [
        ("fleet[2].watts", 'decoding .fleet[2]: reading a ship: watts: expected an integer, found the text "x"'),
        (
            "fleet[2].zzz",
            "strict decoding error: decoding .fleet[2]: strict decoding error: reading a ship: "
            'strict decoding error: unknown field "zzz"; expected one of "name", "watts"',
        ),
        ("fleet[2]", "decoding .fleet[2]: reading a ship: fleet[2]: expected an object, found a list"),
    ]


def test_a_type_may_have_a_decoder_of_its_own() -> None:
    def dimmed(decoder: StrictDecoder, data: object, path: str) -> Lamp:
        return Lamp(name=f"{path}={data}", watts=1)

    ship = StrictDecoder(custom={Lamp: dimmed}).struct(Ship, {"lamps": ["a", "b"]})
    assert ship.lamps == (Lamp(name="lamps[0]=a", watts=1), Lamp(name="lamps[1]=b", watts=1))


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "lamps", "crew", "watchS", "bestLamp", "zzz"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(JSON_LIKE)
def test_any_data_gives_a_ship_or_problems(data: object) -> None:
    ship, problems = decoded(data)
    assert isinstance(ship, Ship)
    assert all(problems)


HEAD = {"apiVersion": API_VERSION, "kind": KIND}
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
FULL = {
    **HEAD,
    "clientConnection": {"kubeconfig": "/etc/config", "qps": 12.5},
    "leaderElection": {"leaderElect": False, "leaseDuration": "1m30s"},
    "percentageOfNodesToScore": 40,
    "delayCacheUntilActive": True,
    "extenders": [
        {
            "urlPrefix": "http://127.0.0.1:9/x",
            "filterVerb": "f",
            "weight": 3,
            "enableHTTPS": True,
            "tlsConfig": {"caData": "aGVsbG8="},
            "httpTimeout": "1500ms",
            "managedResources": [{"name": "a/b", "ignoredByScheduler": True}, {"name": "a/c"}],
        }
    ],
    "profiles": [
        {
            "schedulerName": "a",
            "percentageOfNodesToScore": 50,
            "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality", "weight": 7}]}},
            "pluginConfig": [
                {"name": "Mine", "args": {"free": ["form"]}},
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}
                                ]
                            }
                        }
                    },
                },
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "RequestedToCapacityRatio",
                            "resources": [{"name": "cpu", "weight": 1}],
                            "requestedToCapacityRatio": {"shape": SHAPE},
                        }
                    },
                },
            ],
        },
        {"schedulerName": "b"},
    ],
}


@pytest.mark.parametrize("data", [None, HEAD, FULL], ids=["nothing", "the defaults", "everything"])
def test_it_is_read_back_to_the_same(data: object) -> None:
    configuration = load_configuration(data)
    assert load_configuration(encode_configuration(configuration)) == configuration


def test_what_is_shown_and_what_is_not() -> None:
    reported = encode_configuration(load_configuration(None))
    assert reported["leaderElection"] == {
        "leaderElect": True,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceName": "kube-scheduler",
        "resourceNamespace": "kube-system",
    }
    assert reported["clientConnection"] == {
        "kubeconfig": "",
        "acceptContentTypes": "",
        "contentType": "application/vnd.kubernetes.protobuf",
        "qps": 50,
        "burst": 100,
    }
    assert set(reported) == {
        "apiVersion",
        "kind",
        "parallelism",
        "leaderElection",
        "clientConnection",
        "enableProfiling",
        "enableContentionProfiling",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "profiles",
    }


def test_extenders_and_arguments_are_reported_as_they_were_written() -> None:
    reported = encode_configuration(load_configuration(FULL))
    assert reported["extenders"] == [
        {**FULL["extenders"][0], "httpTimeout": "1.5s"}  # type: ignore[index]  # as Go prints it
    ]
    profiles = reported["profiles"]
    assert isinstance(profiles, list)
    arguments = {entry["name"]: entry.get("args") for entry in profiles[0]["pluginConfig"]}
    assert arguments["Mine"] == {"free": ["form"]}
    assert arguments["NodeAffinity"]["kind"] == "NodeAffinityArgs"
    written = FULL["profiles"][0]["pluginConfig"]  # type: ignore[index]
    assert arguments["NodeAffinity"]["addedAffinity"] == written[1]["args"]["addedAffinity"]
    assert arguments["NodeResourcesFit"]["scoringStrategy"] == written[2]["args"]["scoringStrategy"]
