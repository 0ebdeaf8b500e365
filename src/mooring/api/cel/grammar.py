"""The grammar of CEL as a graph, for reports of what was expected where.

Comes in   the rules below
Goes out   `RULES`: for each rule a tree of steps, in which every step has a place; `expected_at` and `expected_within`,
           which answer what may come at a place

 1. A place is a node of a graph with three kinds of edges: a word, a rule, or nothing.
 2. No rule can be empty; every walk through the graph ends at a word or at the end of its rule.
 3. Where two words of look-ahead are needed to choose, `syntax_faults` chooses: a step only names the choice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from mooring.api.cel.lexer import BYTES, END, ESCAPED_IDENTIFIER, FLOAT, IDENTIFIER, INT, STRING, UINT

WORD_ORDER = [
    END, "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%", "true", "false", "null", FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER, ESCAPED_IDENTIFIER,
]  # fmt: skip
"""The order in which a report lists words."""

_NAMED_WORDS = {END, FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER, ESCAPED_IDENTIFIER}

RULE_END = "<end of rule>"


@dataclass(slots=True)
class Step:
    """Something to read. `place` is where it starts; `after` where it leads."""

    place: int = field(default=-1, init=False)
    after: int = field(default=-1, init=False)


@dataclass(slots=True)
class Word(Step):
    """One of these words."""

    kinds: frozenset[str]


@dataclass(slots=True)
class Invoke(Step):
    """Another rule."""

    rule: str
    precedence: int = 0


@dataclass(slots=True)
class Sequence(Step):
    steps: list[Step]


@dataclass(slots=True)
class Choice(Step):
    """One of several. `decision` names how to choose."""

    alternatives: list[Step]
    decision: str


@dataclass(slots=True)
class Maybe(Step):
    body: Step


@dataclass(slots=True)
class Repeat(Step):
    """Any number of times, or at least once. The alternatives of a body that is a choice are the loop's own."""

    body: Step
    decision: str
    at_least_once: bool = False
    back: int = field(default=-1, init=False)


def shown_words(words: frozenset[str]) -> str:
    """A set of words, as a report shows it."""
    names = [word if word in _NAMED_WORDS else f"'{word}'" for word in WORD_ORDER if word in words]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


# --- the rules --------------------------------------------------------------------------------------------------


def _word(*kinds: str) -> Word:
    return Word(frozenset(kinds))


def _sequence(*steps: Step) -> Sequence:
    return Sequence(list(steps))


def _separated(*item: Step, decision: str) -> Step:
    again = [replace(step) for step in item]  # a step has one place, so the second time needs steps of its own
    return _sequence(*item, Repeat(_sequence(_word(","), *again), decision))


def _braced(content: str) -> list[Step]:
    return [Maybe(Invoke(content)), Maybe(_word(",")), _word("}")]


def _call() -> list[Step]:
    return [_word(IDENTIFIER), _word("("), Maybe(Invoke("arguments")), _word(")")]


RELATIONS = ("==", "!=", "in", "<", "<=", ">=", ">")

RULES: dict[str, Step] = {
    "start": _sequence(Invoke("expression"), _word(END)),
    "expression": _sequence(Invoke("or"), Maybe(_sequence(_word("?"), Invoke("or"), _word(":"), Invoke("expression")))),
    "or": _sequence(Invoke("and"), Repeat(_sequence(_word("||"), Invoke("and")), "next word")),
    "and": _sequence(Invoke("relation"), Repeat(_sequence(_word("&&"), Invoke("relation")), "next word")),
    "relation": _sequence(Invoke("sum"), Repeat(_sequence(_word(*RELATIONS), Invoke("relation", 2)), "relation")),
    "sum": _sequence(
        Invoke("unary"),
        Repeat(
            Choice(
                [
                    _sequence(_word("*", "/", "%"), Invoke("sum", 3)),
                    _sequence(_word("+", "-"), Invoke("sum", 2)),
                ],
                "sum",
            ),
            "sum",
        ),
    ),
    "unary": Choice(
        [
            Invoke("member"),
            _sequence(Repeat(_word("!"), "next word", at_least_once=True), Invoke("member")),
            _sequence(Repeat(_word("-"), "minus", at_least_once=True), Invoke("member")),
        ],
        "unary",
    ),
    "member": _sequence(
        Invoke("primary"),
        Repeat(
            Choice(
                [
                    _sequence(_word("."), Maybe(_word("?")), Invoke("name")),
                    _sequence(_word("."), *_call()),
                    _sequence(_word("["), Maybe(_word("?")), Invoke("expression"), _word("]")),
                ],
                "member",
            ),
            "next word",
        ),
    ),
    "primary": Choice(
        [
            _sequence(Maybe(_word(".")), _word(IDENTIFIER)),
            _sequence(Maybe(_word(".")), *_call()),
            _sequence(_word("("), Invoke("expression"), _word(")")),
            _sequence(_word("["), Maybe(Invoke("elements")), Maybe(_word(",")), _word("]")),
            _sequence(_word("{"), *_braced("entries")),
            _sequence(
                Maybe(_word(".")),
                _word(IDENTIFIER),
                Repeat(_sequence(_word("."), _word(IDENTIFIER)), "next word"),
                _word("{"),
                *_braced("fields"),
            ),
            Invoke("literal"),
        ],
        "primary",
    ),
    "arguments": _separated(Invoke("expression"), decision="next word"),
    "elements": _separated(Invoke("element"), decision="comma"),
    "fields": _separated(Invoke("field"), _word(":"), Invoke("expression"), decision="comma"),
    "field": _sequence(Maybe(_word("?")), Invoke("name")),
    "entries": _separated(Invoke("element"), _word(":"), Invoke("expression"), decision="comma"),
    "name": Choice([_word(IDENTIFIER), _word(ESCAPED_IDENTIFIER)], "next word"),
    "element": _sequence(Maybe(_word("?")), Invoke("expression")),
    "literal": Choice(
        [
            _sequence(Maybe(_word("-")), _word(INT)),
            _word(UINT),
            _sequence(Maybe(_word("-")), _word(FLOAT)),
            _word(STRING),
            _word(BYTES),
            _word("true"),
            _word("false"),
            _word("null"),
        ],
        "literal",
    ),
}


# --- the graph --------------------------------------------------------------------------------------------------


class _Graph:
    def __init__(self) -> None:
        self.free: list[list[int]] = []
        self.words: dict[int, tuple[frozenset[str], int]] = {}
        self.rules: dict[int, tuple[str, int]] = {}
        self.ends: set[int] = set()
        self.starts: dict[str, int] = {}
        self.known: dict[int, frozenset[str]] = {}

    def place(self) -> int:
        self.free.append([])
        return len(self.free) - 1

    def add(self, step: Step, start: int, end: int) -> None:
        step.place, step.after = start, end
        match step:
            case Word():
                self.words[start] = (step.kinds, end)
            case Invoke():
                self.rules[start] = (step.rule, end)
            case Sequence():
                places = [start, *(self.place() for _ in step.steps[1:]), end]
                for part, here, there in zip(step.steps, places, places[1:]):
                    self.add(part, here, there)
            case Choice():
                for alternative in step.alternatives:
                    self._add_branch(alternative, start, end)
            case Maybe():
                self._add_branch(step.body, start, end)
                self.free[start].append(end)
            case Repeat():
                step.back = self.place()
                self._add_branch(step.body, start, step.back)
                self.free[step.back] += [start, end]
                if not step.at_least_once:
                    self.free[start].append(end)
            case _:
                raise AssertionError(step)

    def _add_branch(self, step: Step, start: int, end: int) -> None:
        inside = self.place()
        self.free[start].append(inside)
        self.add(step, inside, end)

    def expected(self, place: int) -> frozenset[str]:
        if place not in self.known:
            self.known[place] = frozenset(self._walk(place, set()))
        return self.known[place]

    def _walk(self, place: int, seen: set[int]) -> set[str]:
        if place in seen:
            return set()
        seen.add(place)
        found = {RULE_END} if place in self.ends else set()
        if place in self.words:
            found |= self.words[place][0]
        if place in self.rules:
            found |= self._walk(self.starts[self.rules[place][0]], set())
        for next_place in self.free[place]:
            found |= self._walk(next_place, seen)
        return found


_graph = _Graph()
for _name, _step in RULES.items():
    _start, _end = _graph.place(), _graph.place()
    _graph.starts[_name] = _start
    _graph.ends.add(_end)
    _graph.add(_step, _start, _end)


def expected_at(place: int) -> frozenset[str]:
    """The words that may come at a place; `RULE_END` among them if the rule may end there."""
    return _graph.expected(place)


def expected_within(place: int, callers: list[int]) -> frozenset[str]:
    """The words that may come at a place, given the places to which the rules around it return, innermost last."""
    found: set[str] = set()
    following = expected_at(place)
    for caller in reversed(callers):
        found |= following
        if RULE_END not in following:
            break
        following = expected_at(caller)
    else:
        found |= following | ({END} if RULE_END in following else set())
    return frozenset(found - {RULE_END})
