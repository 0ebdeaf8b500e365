"""The parser: from words to a tree.

Comes in   a `Source`
Goes out   the tree, with macros expanded; what is wrong is reported to the source

    expression   = or [ "?" or ":" expression ]          or = and { "||" and }       and = relation { "&&" relation }
    relation     = sum { ("<" | "<=" | ">=" | ">" | "==" | "!=" | "in") sum }
    sum          = product { ("+" | "-") product }       product = unary { ("*" | "/" | "%") unary }
    unary        = member | "!" { "!" } member | "-" { "-" } member
    member       = primary { "." [ "?" ] name [ "(" arguments ")" ] | "[" [ "?" ] expression "]" }

 1. A fault of syntax ends the parsing here; `syntax_faults` then reads the words again, slowly, and reports all of them
    as Kubernetes does. So the usual, faultless expression pays nothing for good reports.
 2. Faults of meaning (a reserved name, a macro with wrong arguments) are reported, and parsing goes on.
 3. Nesting has a limit, because parsing, checking and evaluating all descend with it.
"""

from __future__ import annotations

import re

from mooring.api.cel import lexer
from mooring.api.cel.lexer import END, ESCAPED_IDENTIFIER, IDENTIFIER, Token, tokens_of
from mooring.api.cel.literals import (
    LiteralError,
    bytes_literal,
    float_literal,
    int_literal,
    string_literal,
    uint_literal,
)
from mooring.api.cel.macros import expanded
from mooring.api.cel.source import NOWHERE, Source
from mooring.api.cel.syntax import (
    AND,
    BINARY_OPERATORS,
    CONDITIONAL,
    INDEX,
    NEGATE,
    NOT,
    OPTIONAL_INDEX,
    OPTIONAL_SELECT,
    OR,
    Broken,
    Call,
    FieldEntry,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from mooring.api.cel.syntax_faults import report_syntax_faults
from mooring.api.cel.values import Value

NESTING_MAX = 250
NESTED_TOO_DEEPLY = f"expression recursion limit exceeded: {NESTING_MAX}"

RESERVED_NAMES = re.compile(
    "as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while"
)
_PRECEDENCE = {"<": 1, "<=": 1, ">=": 1, ">": 1, "==": 1, "!=": 1, "in": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3}
_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}


def parse(source: Source) -> Node:
    """The tree of an expression. Look at the source's faults before you use it."""
    tokens = tokens_of(source)
    parser = _Parser(source, tokens)
    try:
        tree = parser.expression()
        parser.expect(END)
    except _SyntaxFault:
        del source.faults[parser.faults_of_lexer :]
        return _reported(source, tokens)
    except (_TooDeep, RecursionError):
        return _reported_as_too_deep(source)
    return tree


def _reported(source: Source, tokens: list[Token]) -> Node:
    try:
        report_syntax_faults(source, tokens)
    except RecursionError:
        return _reported_as_too_deep(source)
    return Broken(0)


def _reported_as_too_deep(source: Source) -> Node:
    source.faults[:] = []
    source.report(NOWHERE, NESTED_TOO_DEEPLY)
    return Broken(0)


class _SyntaxFault(Exception):
    """The words do not form an expression."""


class _TooDeep(Exception):
    """The expression is nested too deeply."""


class _Parser:
    def __init__(self, source: Source, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.position = 0
        self.ahead = tokens[0].kind
        self.depth = 0
        self.faults_of_lexer = len(source.faults)

    # --- words ---

    def take(self) -> Token:
        token = self.tokens[self.position]
        if token.kind is not END:
            self.position += 1
            self.ahead = self.tokens[self.position].kind
        return token

    def expect(self, kind: str) -> Token:
        if self.ahead != kind:
            raise _SyntaxFault
        return self.take()

    def take_if(self, kind: str) -> bool:
        if self.ahead != kind:
            return False
        self.take()
        return True

    # --- operators ---

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise _TooDeep
        node = self._either()
        if self.ahead == "?":
            operator = self.take()
            if_true = self._either()
            self.expect(":")
            node = Call(operator.offset, CONDITIONAL, [node, if_true, self.expression()])
        self.depth -= 1
        return node

    def _either(self) -> Node:
        node = self._both()
        if self.ahead != "||":
            return node
        offset, terms = self.tokens[self.position].offset, [node]
        while self.take_if("||"):
            terms.append(self._both())
        return Call(offset, OR, terms)

    def _both(self) -> Node:
        node = self._binary(1)
        if self.ahead != "&&":
            return node
        offset, terms = self.tokens[self.position].offset, [node]
        while self.take_if("&&"):
            terms.append(self._binary(1))
        return Call(offset, AND, terms)

    def _binary(self, precedence_min: int) -> Node:
        left = self._unary()
        length = 0
        while (precedence := _PRECEDENCE.get(self.ahead, 0)) >= precedence_min:
            length = self._longer(length)
            operator = self.take()
            left = Call(operator.offset, BINARY_OPERATORS[operator.kind], [left, self._binary(precedence + 1)])
        return left

    def _unary(self) -> Node:
        sign = self.ahead
        if sign != "!" and sign != "-":
            return self._member()
        offset, count = self.tokens[self.position].offset, 0
        is_number = self.tokens[self.position + 1].kind in (lexer.INT, lexer.FLOAT)
        if sign == "-" and is_number:
            return self._member()
        while self.take_if(sign):
            count += 1
        operand = self._member(allows_sign=sign == "!")
        return Call(offset, NOT if sign == "!" else NEGATE, [operand]) if count % 2 else operand

    # --- members ---

    def _member(self, allows_sign: bool = True) -> Node:
        node = self._primary(allows_sign)
        length = 0
        while True:
            if self.ahead == ".":
                node = self._after_dot(node)
            elif self.ahead == "[":
                node = self._indexed(node)
            else:
                return node
            length = self._longer(length)

    def _after_dot(self, node: Node) -> Node:
        dot = self.take()
        is_optional = self.take_if("?")
        name = self.take()
        if name.kind == IDENTIFIER and self.ahead == "(" and not is_optional:
            bracket = self.take()
            return expanded(self.source, Call(bracket.offset, name.text, self._arguments(")"), node))
        if name.kind == ESCAPED_IDENTIFIER:
            return self._report(node.offset if is_optional else _start(node), "unsupported syntax: '`'")
        if name.kind != IDENTIFIER:
            raise _SyntaxFault
        if is_optional:
            return Call(dot.offset, OPTIONAL_SELECT, [node, Literal(name.offset, name.text)])
        return Select(dot.offset, node, name.text)

    def _indexed(self, node: Node) -> Node:
        bracket = self.take()
        function = OPTIONAL_INDEX if self.take_if("?") else INDEX
        index = self.expression()
        self.expect("]")
        return Call(bracket.offset, function, [node, index])

    def _arguments(self, end: str) -> list[Node]:
        arguments: list[Node] = []
        if self.ahead != end:
            arguments.append(self.expression())
            while self.take_if(","):
                arguments.append(self.expression())
        self.expect(end)
        return arguments

    # --- primaries ---

    def _primary(self, allows_sign: bool) -> Node:
        token = self.take()
        match token.kind:
            case "." | lexer.IDENTIFIER:
                return self._named(token)
            case "(":
                nested = self.expression()
                self.expect(")")
                return nested
            case "[":
                return self._list(token)
            case "{":
                return self._map(token)
            case "true" | "false" | "null":
                return Literal(token.offset, _CONSTANTS[token.kind])
            case _:
                return self._literal(token, allows_sign)

    def _named(self, token: Token) -> Node:
        has_dot = token.kind == "."
        name = self.expect(IDENTIFIER) if has_dot else token
        if self._is_struct_ahead():
            return self._struct(token.offset, ("." if has_dot else "") + name.text)
        spelled = ("." if has_dot else "") + name.text
        if self.ahead == "(":
            bracket = self.take()
            arguments = self._arguments(")")
            if RESERVED_NAMES.fullmatch(name.text):
                return self._report(token.offset, f"reserved identifier: {name.text}")
            return expanded(self.source, Call(bracket.offset, spelled, arguments))
        if RESERVED_NAMES.fullmatch(name.text):
            return self._report(token.offset, f"reserved identifier: {name.text}")
        return Identifier(name.offset, spelled)

    def _literal(self, token: Token, allows_sign: bool) -> Node:
        offset, is_negative = token.offset, False
        if token.kind == "-" and allows_sign and self.ahead in (lexer.INT, lexer.FLOAT):
            is_negative, token = True, self.take()
        try:
            return Literal(offset, _literal_value(token, is_negative))
        except LiteralError as error:
            return self._report(offset, str(error))

    def _list(self, bracket: Token) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        while self.ahead != "]":
            if elements or self.ahead == ",":
                self.expect(",")
                if self.ahead == "]":
                    break
                if not elements:
                    raise _SyntaxFault
            if self.take_if("?"):
                optional.add(len(elements))
            elements.append(self.expression())
        self.expect("]")
        return ListLiteral(bracket.offset, elements, frozenset(optional))

    def _map(self, bracket: Token) -> Node:
        entries: list[MapEntry] = []
        while self.ahead != "}":
            if entries or self.ahead == ",":
                self.expect(",")
                if self.ahead == "}":
                    break
                if not entries:
                    raise _SyntaxFault
            is_optional = self.take_if("?")
            key = self.expression()
            colon = self.expect(":")
            entries.append(MapEntry(colon.offset, key, self.expression(), is_optional))
        self.expect("}")
        return MapLiteral(bracket.offset, entries)

    def _is_struct_ahead(self) -> bool:
        position = self.position
        while self.tokens[position].kind == "." and self.tokens[position + 1].kind == IDENTIFIER:
            position += 2
        return self.tokens[position].kind == "{"

    def _struct(self, offset: int, name: str) -> Node:
        while self.take_if("."):
            name += f".{self.take().text}"
        bracket = self.take()
        fields: list[FieldEntry] = []
        while self.ahead != "}":
            if fields or self.ahead == ",":
                self.expect(",")
                if self.ahead == "}":
                    break
                if not fields:
                    raise _SyntaxFault
            is_optional = self.take_if("?")
            field_name = self.take()
            if field_name.kind not in (IDENTIFIER, ESCAPED_IDENTIFIER):
                raise _SyntaxFault
            colon = self.expect(":")
            if field_name.kind == ESCAPED_IDENTIFIER:
                self._report(offset, "unsupported syntax: '`'")
            fields.append(FieldEntry(colon.offset, field_name.text, self.expression(), is_optional))
        self.expect("}")
        return StructLiteral(bracket.offset, name, fields)

    # --- limits and reports ---

    def _longer(self, length: int) -> int:
        if length >= NESTING_MAX:
            raise _TooDeep
        return length + 1

    def _report(self, offset: int, text: str) -> Node:
        self.source.report(offset, text)
        return Broken(offset)


def _literal_value(token: Token, is_negative: bool) -> Value:
    match token.kind:
        case lexer.STRING:
            return string_literal(token.text)
        case lexer.INT:
            return int_literal(token.text, is_negative)
        case lexer.FLOAT:
            return float_literal(token.text, is_negative)
        case lexer.UINT:
            return uint_literal(token.text)
        case lexer.BYTES:
            return bytes_literal(token.text)
        case _:
            raise _SyntaxFault


def _start(node: Node) -> int:
    """Where a path of members begins."""
    while True:
        match node:
            case Select(operand=operand):
                node = operand
            case Call(target=Node() as target):
                node = target
            case Call(function=function, arguments=[first, *_]) if function in (INDEX, OPTIONAL_INDEX, OPTIONAL_SELECT):
                node = first
            case _:
                return node.offset
