"""Judgements of new pods, remembered for the others of their kind.

Comes in   a new pod as admission left it; what was found about it
Goes out   the same for the next pod with the same spec and the same annotations

 1. Only pods without a fault are remembered, whose spec was right as it was: nothing to prepare, nothing to warn of on
    the way, and nothing that is stored in another form.
 2. The question is the whole spec, but for its free texts, and all annotations. What is judged by anything else (the
    name, labels, the time) is never remembered: `_JUDGED_BY_MORE` lists it. Metadata is judged each time.
 3. The volume with the token is named by chance, and its name is left out of the question. It is a name that every rule
    likes, and it says the same of two pods if it stands in the same places: so one may be put for the other, unless a
    text for users holds it.
 4. Of what comes for the first time only a mark is kept: most never comes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from mooring.api.document import Document
from mooring.api.memory import Marks, Memory
from mooring.api.schema.tables import struct_named
from mooring.apiserver.free_texts import outline_of
from mooring.apiserver.wire.empty_lists import forget_empty_lists
from mooring.kit.entropy import SUFFIX_ALPHABET, SUFFIX_LENGTH

JUDGEMENTS_KEPT_MAX = 256
SEEN_MAX = 4096
QUESTION_BYTES_MAX = 64 * 1024
TOKEN_VOLUME_PREFIX = "kube-api-access-"

_NO_NAME = b"\x00"
"""Cannot stand in JSON."""
_JUDGED_BY_MORE = (
    b'LabelKeys":',  # by the labels: matchLabelKeys, mismatchLabelKeys
    b'"schedulingGates":',  # their condition has a time
    b'"ephemeral":',  # the claim is named after the pod
)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Question(NamedTuple):
    """What a judgement depends on, and the name that was left out of it."""

    content: bytes
    token_volume: str
    spec: bytes
    """The spec as it would be stored."""
    is_whole: bool
    """Whether free texts count, too: where the very same spec came before, nobody looks for them."""


class PodJudgement(NamedTuple):
    """What is known of a pod without faults."""

    quality: str
    warnings: tuple[str, ...]
    """Of the spec: those of the name are its own."""


def question_about(pod: Document, *, is_whole: bool = False) -> Question | None:
    """What to look for; None for a pod whose judgement is not remembered."""
    spec, annotations = pod["spec"], pod["metadata"].get("annotations")
    form = _encode(spec)
    content = form if is_whole else outline_of(form).form
    if annotations:
        content += _encode(annotations)
    if len(content) > QUESTION_BYTES_MAX or any(field in content for field in _JUDGED_BY_MORE):
        return None
    volumes = spec.get("volumes")
    name = volumes[-1].get("name", "") if volumes else ""
    if not _is_token_volume(name):
        return Question(content, "", form, is_whole)
    return Question(content.replace(name.encode(), _NO_NAME), name, form, is_whole)


class PodJudgements:
    """Remembers."""

    def __init__(self) -> None:
        self._known: Memory[bytes, PodJudgement] = Memory(JUDGEMENTS_KEPT_MAX)
        self._seen = Marks(SEEN_MAX)

    def find(self, question: Question) -> PodJudgement | None:
        return self._known.get(question.content)

    def note(self, question: Question, pod: Document, warnings: Sequence[str]) -> None:
        """A pod without faults was prepared, and its spec is worth these warnings."""
        if self._seen.is_new(question.content):
            return
        is_told = question.token_volume and any(question.token_volume in text for text in warnings)
        if not is_told and question_about(pod, is_whole=question.is_whole) == question and _is_as_stored(question.spec):
            self._known.keep(question.content, PodJudgement(pod["status"]["qosClass"], tuple(warnings)))


def _is_as_stored(form: bytes) -> bool:
    """Whether there is no empty list in a spec, which the store would not tell from none."""
    spec = _decode(form)
    forget_empty_lists(struct_named("core", "PodSpec"), spec)
    return _encode(spec) == form


def _is_token_volume(name: str) -> bool:
    """Whether it is a name that `ServiceAccount` makes up."""
    chance = name[len(TOKEN_VOLUME_PREFIX) :]
    return (
        name.startswith(TOKEN_VOLUME_PREFIX)
        and len(chance) == SUFFIX_LENGTH
        and all(character in SUFFIX_ALPHABET for character in chance)
    )
