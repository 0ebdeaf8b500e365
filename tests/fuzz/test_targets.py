"""Every input of the corpus through its target: the seeds, and the findings of `make fuzz`.

A finding of `make fuzz` is fixed where it comes from, and its input is copied into `corpus/TARGET/` under a name that
says what it showed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.__main__ import START_S, WEIGHTS, part_of, share_s
from tests.fuzz.targets import CORPUS, TARGETS, WORDS, Target

INPUTS = [
    pytest.param(target, file, id=f"{target.name}/{file.name}")
    for target in TARGETS.values()
    for file in target.seeds()
]
SEED_BYTES_MAX = 8_192


@pytest.mark.parametrize(("target", "file"), INPUTS)
def test_the_parser_reads_the_input_or_rejects_it(target: Target, file: Path) -> None:
    target(file.read_bytes())


def test_every_target_has_seeds_and_words() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} == TARGETS.keys()
    assert {file.stem for file in WORDS.iterdir()} == TARGETS.keys()


def test_inputs_are_small() -> None:
    large = [
        str(file) for target in TARGETS.values() for file in target.seeds() if file.stat().st_size > SEED_BYTES_MAX
    ]
    assert large == []


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("http_head", b"0GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("http_request", b"GET /api/v1/pods?limit=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\n"),
        ("http_body", b'1{"data":{"a":"b"}}'),
        ("yaml", b"1data: {a: b}"),
        ("protobuf", b"8\x12\x06\n\x01a\x12\x01b"),
        ("json_patch", b'0[{"op":"add","path":"/metadata/labels/n","value":"m"}]'),
        ("selectors", b"0a=b"),
        ("quantities", b"1.5Gi"),
        ("cel", b"0device.driver == 'gpu.example.com'"),
        ("cel", b"1self.count == 7"),
        ("kubeconfig", (CORPUS / "kubeconfig" / "token").read_bytes()),
    ],
)
def test_a_good_input_is_not_rejected(name: str, data: bytes) -> None:
    """Otherwise a target tests nothing but its first check."""
    TARGETS[name].run(data)


def test_an_unexpected_exception_is_a_finding() -> None:
    def run(data: bytes) -> None:
        raise (ValueError if data == b"bad" else KeyError)(data)

    strict = Target("strict", run, (ValueError,))
    strict(b"bad")
    with pytest.raises(KeyError):
        strict(b"worse")


@pytest.mark.parametrize("seconds", [200, 600, 6_000])
def test_the_parts_share_the_time(seconds: int) -> None:
    names, left_s = list(WEIGHTS), float(seconds)
    while names:
        left_s -= share_s(names, left_s) + START_S
        names.pop(0)
    assert 0.0 <= left_s <= len(WEIGHTS)


def test_without_time_each_part_has_a_second() -> None:
    assert share_s(list(WEIGHTS), 0.0) == 1


def test_a_part_is_repeated_by_its_command(tmp_path: Path) -> None:
    options = ["--seed", "7", "--seconds", "9", "--findings", str(tmp_path)]
    assert part_of("cel", 7, 9, tmp_path).command == ["-m", "tests.fuzz.coverage", "cel", *options]
    assert part_of("openapi", 7, 9, tmp_path).command == ["-m", "tests.fuzz.openapi", *options]
    assert TARGETS.keys() < WEIGHTS.keys()
