"""Least item first, earlier items first among equals, access by key."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.kit.heap import STALE_MIN, KeyedHeap

Heap = KeyedHeap[str, int]


def heap_of(**values: int) -> Heap:
    heap = Heap(lambda value: value)
    for key, value in values.items():
        heap.push(key, value)
    return heap


def drain(heap: Heap) -> list[str]:
    keys = []
    while (item := heap.pop()) is not None:
        keys.append(item[0])
    return keys


def test_items_come_out_least_first() -> None:
    assert drain(heap_of(c=3, a=1, b=2)) == ["a", "b", "c"]


def test_equals_come_out_in_the_order_they_came_in() -> None:
    assert drain(heap_of(z=1, y=1, x=1, w=0)) == ["w", "z", "y", "x"]


def test_an_update_moves_an_item_to_its_new_order() -> None:
    heap = heap_of(a=1, b=2, c=3)
    heap.update("c", 0)
    heap.update("a", 9)
    assert drain(heap) == ["c", "b", "a"]


def test_an_updated_item_keeps_its_place_among_equals() -> None:
    heap = heap_of(a=1, b=1, c=1)
    heap.update("a", 5)
    heap.update("a", 1)
    heap.update("b", 1)
    assert drain(heap) == ["a", "b", "c"]


def test_an_item_pushed_again_after_its_deletion_stands_last_among_equals() -> None:
    heap = heap_of(a=1, b=1)
    assert heap.delete("a") == 1
    heap.push("a", 1)
    assert drain(heap) == ["b", "a"]


def test_a_deleted_item_is_gone() -> None:
    heap = heap_of(a=1, b=2)
    assert heap.delete("a") == 1
    assert heap.delete("a") is None
    assert ("a" in heap, heap.get("a"), len(heap)) == (False, None, 1)
    assert heap.peek() == ("b", 2)


def test_looking_takes_nothing_out() -> None:
    heap = heap_of(b=2, a=1)
    assert heap.peek() == ("a", 1)
    assert heap.in_order() == [("a", 1), ("b", 2)]
    assert list(heap) == ["b", "a"]
    assert heap.get("b") == 2
    assert len(heap) == 2


def test_an_empty_heap_has_nothing_to_give() -> None:
    assert (Heap(int).peek(), Heap(int).pop(), Heap(int).in_order(), len(Heap(int))) == (None, None, [], 0)


def test_put_pushes_what_is_new_and_updates_what_is_not() -> None:
    heap = heap_of()
    heap.put("a", 2)
    heap.put("b", 1)
    heap.put("a", 0)
    assert heap.in_order() == [("a", 0), ("b", 1)]


@pytest.mark.parametrize(
    ("misuse", "words"),
    [
        pytest.param(lambda heap: heap.push("a", 2), "'a' is already in the heap", id="pushing a key twice"),
        pytest.param(lambda heap: heap.update("b", 2), "'b' is not in the heap", id="updating what is not there"),
    ],
)
def test_misuse_says_what_to_do_instead(misuse: Callable[[Heap], None], words: str) -> None:
    heap = heap_of(a=1)
    with pytest.raises(KeyError, match=words):
        misuse(heap)
    assert heap.in_order() == [("a", 1)]


def test_a_value_that_cannot_be_ordered_leaves_the_heap_as_it_was() -> None:
    heap = KeyedHeap[str, int](lambda value: 10 // value)
    heap.push("a", 1)
    with pytest.raises(ZeroDivisionError):
        heap.update("a", 0)
    with pytest.raises(ZeroDivisionError):
        heap.push("b", 0)
    assert heap.in_order() == [("a", 1)]


def test_keys_and_values_need_no_order_of_their_own() -> None:
    heap = KeyedHeap[object, object](lambda value: 0)
    first, second = object(), object()
    heap.push(first, object())
    heap.push(second, object())
    heap.update(first, object())
    assert [item[0] for item in heap.in_order()] == [first, second]
    assert (heap.pop() or (None,))[0] is first


def test_tuples_are_an_order() -> None:
    heap = KeyedHeap[str, tuple[int, str]](lambda pod: (-pod[0], pod[1]))
    heap.push("low", (1, "a"))
    heap.push("high", (9, "b"))
    assert heap.pop() == ("high", (9, "b"))


def test_stale_entries_are_swept() -> None:
    heap = heap_of(bottom=1_000_000)
    for value in range(10_000):
        heap.put("restless", value)
    assert len(heap) == 2
    assert heap.stale <= STALE_MIN
    assert drain(heap) == ["restless", "bottom"]


def test_what_comes_out_of_order_finds_its_place_beside_the_line() -> None:
    heap = heap_of(c=5, e=7, a=3, f=8, d=6, b=4)
    assert heap.pop() == ("a", 3)
    heap.push("g", 9)
    assert drain(heap) == ["b", "c", "d", "e", "f", "g"]


def test_stale_entries_are_swept_from_the_queue_too() -> None:
    heap = heap_of()
    for number in range(1_000):
        heap.push(f"{number:03}", number)
    for number in range(1, 1_000):
        heap.delete(f"{number:03}")
    assert heap.stale <= STALE_MIN
    assert drain(heap) == ["000"]


keys = st.sampled_from("abcdefgh")
moves = st.one_of(
    st.tuples(st.just("put"), keys, st.integers(0, 4)),
    st.tuples(st.just("delete"), keys, st.just(0)),
    st.tuples(st.just("pop"), st.just(""), st.just(0)),
)


@given(history=st.lists(moves, max_size=60))
def test_the_heap_agrees_with_a_sorted_list(history: list[tuple[str, str, int]]) -> None:
    heap = Heap(int)
    model: dict[str, tuple[int, int]] = {}  # key: (value, when it came in)
    for moment, (move, key, value) in enumerate(history):
        if move == "put":
            heap.put(key, value)
            model[key] = (value, model[key][1] if key in model else moment)
        elif move == "delete":
            gone = model.pop(key, None)
            assert heap.delete(key) == (None if gone is None else gone[0])
        else:
            least = min(model, key=lambda key: model[key], default=None)
            assert heap.pop() == (None if least is None else (least, model.pop(least)[0]))
        assert heap.in_order() == [(key, model[key][0]) for key in sorted(model, key=lambda key: model[key])]
