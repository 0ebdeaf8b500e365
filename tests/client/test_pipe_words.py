"""What is said over a pipe means the same at the other end."""

from __future__ import annotations

import pytest

from mooring.api.kinds import POD, Kind, all_kinds
from mooring.client import pipe_words as words
from mooring.client.errors import (
    AlreadyExistsError,
    BadRequestError,
    Cause,
    ClientError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NoAnswerError,
    NotFoundError,
    ServerError,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
)
from mooring.client.http.connection import CredentialsError
from mooring.client.interface import Deletion, Propagation, Selection


def _told_over(error: ClientError) -> ClientError:
    (reply,) = words.replies_in(words.encoded([words.failure_of(7, error)]))
    assert isinstance(reply, words.Failure)
    assert reply.number == 7
    return words.error_in(reply)


class TestErrors:
    @pytest.mark.parametrize(
        "error",
        [
            ClientError("something"),
            NoAnswerError("cut off"),
            StatusError("teapot", code=418, reason="Teapot"),
            InvalidError("bad", causes=[Cause("FieldValueInvalid", "must be positive", "spec.replicas")]),
            BadRequestError("unreadable"),
            UnauthorizedError("who?"),
            ForbiddenError("no", details={"kind": "pods", "name": "web"}),
            NotFoundError("none", details={}),
            AlreadyExistsError("twice"),
            ConflictError("changed", details={"name": "web"}),
            ExpiredError("too old"),
            TooManyRequestsError("later", retry_after_s=3.5),
            ServerError("trouble", code=503, reason="ServiceUnavailable"),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_an_error_is_the_same_at_the_other_end(self, error: ClientError) -> None:
        told = _told_over(error)
        assert type(told) is type(error)
        assert str(told) == str(error)
        assert vars(told) == vars(error)

    def test_a_list_that_became_too_old_can_be_continued(self) -> None:
        error = ExpiredError("too old")
        error.continue_token = "go on"
        told = _told_over(error)
        assert isinstance(told, ExpiredError)
        assert told.continue_token == "go on"

    def test_an_error_of_a_sort_that_only_one_end_knows_is_told_as_what_it_is_a_sort_of(self) -> None:
        told = _told_over(CredentialsError("there is no token"))
        assert type(told) is ClientError
        assert str(told) == "there is no token"


class TestKinds:
    def test_each_row_of_the_table_is_found_again(self) -> None:
        for kind in all_kinds():
            assert words.kind_of_name(words.name_of_kind(kind)) is kind

    def test_a_custom_kind_has_a_row_of_its_own_that_is_stored_in_the_same_place(self) -> None:
        boat = Kind("example.org/v1", "Boat", "boats", is_namespaced=False, has_status=True, folder="example.org/boats")
        told = words.kind_of_name(words.name_of_kind(boat))
        assert words.name_of_kind(told) == words.name_of_kind(boat)
        assert told.key("", "ark") == boat.key("", "ark")

    def test_a_kind_that_is_only_called_like_one_of_the_table_is_another_one(self) -> None:
        assert words.kind_of_name(words.name_of_kind(Kind("v1", "Pod", "capsules"))) is not POD


class TestTheRest:
    @pytest.mark.parametrize(
        "deletion",
        [None, Deletion(), Deletion(0, "uid", "12", Propagation.ORPHAN), Deletion(propagation=Propagation.FOREGROUND)],
    )
    def test_a_deletion_is_the_same_at_the_other_end(self, deletion: Deletion | None) -> None:
        asked = words.Delete(1, words.name_of_kind(POD), "default", "web", words.how_of(deletion))
        (question,) = words.questions_in(words.encoded([asked]))
        assert isinstance(question, words.Delete)
        assert words.deletion_in(question.how) == deletion

    def test_a_selection_is_the_same_at_the_other_end(self) -> None:
        selection = Selection("default", "app=web", "spec.nodeName=")
        asked = words.OpenWatch(1, words.name_of_kind(POD), words.fields_of(selection), "12", bookmarks=True)
        (question,) = words.questions_in(words.encoded([asked]))
        assert isinstance(question, words.OpenWatch)
        assert words.selection_in(question.selection) == selection
