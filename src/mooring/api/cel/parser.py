"""Parse an expression into a syntax tree: tokens, literals, grammar.

Input: a `CelSource`. Output: the tree of `syntax`, with macros expanded; errors are reported to the source.

    expression   = or [ "?" or ":" expression ]          or = and { "||" and }       and = relation { "&&" relation }
    relation     = sum { ("<" | "<=" | ">=" | ">" | "==" | "!=" | "in") sum }
    sum          = product { ("+" | "-") product }       product = unary { ("*" | "/" | "%") unary }
    unary        = member | "!" { "!" } member | "-" { "-" } member
    member       = primary { "." [ "?" ] name [ "(" arguments ")" ] | "[" [ "?" ] expression "]" }

 1. The first syntax error ends parsing, with one message at its token.
 2. Other errors (a reserved name, a literal out of range, a macro with wrong arguments) leave a `InvalidNode` node, and
    parsing goes on.
 3. Nesting has a limit, because the parser, the checker and the compiler recurse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mooring.api.cel.errors import NOWHERE, CelSource
from mooring.api.cel.macros import expanded
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
    CallNode,
    FieldEntry,
    Identifier,
    InvalidNode,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Select,
    StructLiteral,
    SyntaxNode,
)
from mooring.api.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint, Value, read_integer

NESTING_MAX = 250
NESTED_TOO_DEEPLY = f"expression recursion limit exceeded: {NESTING_MAX}"

EXPRESSION_LENGTH_MAX = 100_000
TOKEN_SHOWN_MAX = 64

RESERVED_NAMES = re.compile(
    "as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while"
)
_PRECEDENCE = {"<": 1, "<=": 1, ">=": 1, ">": 1, "==": 1, "!=": 1, "in": 1, "+": 2, "-": 2, "*": 3, "/": 3, "%": 3}
_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}


# --- tokens -----------------------------------------------------------------------------------------------------

END = "<end>"
FLOAT, INT, UINT = "NUM_FLOAT", "NUM_INT", "NUM_UINT"
STRING, BYTES, IDENTIFIER, ESCAPED_IDENTIFIER = "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER"

KEYWORDS = frozenset({"in", "true", "false", "null"})

_STRING_BODY = r"""
      [rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n\r]*\"|'[^'\n\r]*')
    | \"\"\"(?:{escape}|[^\\])*?\"\"\" | '''(?:{escape}|[^\\])*?'''
    | \"(?:{escape}|[^\\\"\n\r])*\" | '(?:{escape}|[^\\'\n\r])*'
"""
_ESCAPED_CHARACTER = r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7])"""
_TOKEN = re.compile(
    rf"""
    (?P<space>[\t \r\n\f]+ | //[^\n]*)
    | (?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | \.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<NUM_UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    | (?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
    | (?P<BYTES>[bB](?:{_STRING_BODY}))
    | (?P<STRING>{_STRING_BODY})
    | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
    | (?P<symbol>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """.replace("{escape}", _ESCAPED_CHARACTER),
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    offset: int


def tokens_of(text: str) -> list[Token]:
    """All tokens except white space and comments, then `END`. Raises `_SyntaxError`."""
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable_token(text, position)
        kind = match.lastgroup
        if kind == "symbol" or (kind == IDENTIFIER and match[0] in KEYWORDS):
            found.append(Token(match[0], match[0], position))
        elif kind is not None and kind != "space":
            found.append(Token(kind, match[0], position))
        position = match.end()
    found.append(Token(END, END, len(text)))
    return found


def _unreadable_token(text: str, offset: int) -> _SyntaxError:
    if re.compile("""[bB]?[rR]?["']""").match(text, offset):
        return _SyntaxError(offset, "string is not closed, or has an invalid escape sequence")
    return _SyntaxError(offset, f"unexpected character '{escaped(text[offset])}'")


def escaped(text: str) -> str:
    """Part of an expression for an error message, on one line."""
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


# --- literals ---------------------------------------------------------------------------------------------------


class LiteralError(ValueError):
    """The literal has no value."""


def int_literal(text: str, is_negative: bool) -> int:
    amount = _integer(text)
    value = -amount if is_negative else amount
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def _integer(text: str) -> int:
    return read_integer(text[2:], 16) if text.startswith("0x") else read_integer(text)


def uint_literal(text: str) -> Uint:
    value = _integer(text[:-1])
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def float_literal(text: str, is_negative: bool) -> float:
    value = float(text)
    if value == float("inf"):
        raise LiteralError("invalid double literal")
    return -value if is_negative else value


def string_literal(text: str) -> str:
    is_raw, body = _body(text)
    if is_raw or "\\" not in body:
        return body
    return _ESCAPE.sub(_letter, body)


def bytes_literal(text: str) -> bytes:
    is_raw, body = _body(text[1:])
    if is_raw or "\\" not in body:
        return body.encode()
    return b"".join(_bytes_of(part) for part in _ESCAPE_OR_LETTER.findall(body))


_ESCAPE = re.compile(r"\\(?:[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPE_OR_LETTER = re.compile(rf"{_ESCAPE.pattern}|[^\\]", re.DOTALL)
_SINGLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _body(text: str) -> tuple[bool, str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    if is_raw:
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return is_raw, text[quotes:-quotes]


def _letter(match: re.Match[str]) -> str:
    code = _code(match[0])
    if code is None:
        return _SINGLE.get(match[0][1], match[0][1])
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _bytes_of(part: str) -> bytes:
    if part[0] != "\\":
        return part.encode()
    if part[1] in "uU":
        raise LiteralError("unable to unescape string")
    code = _code(part)
    return _SINGLE.get(part[1], part[1]).encode() if code is None else bytes((code & 0xFF,))


def _code(escape: str) -> int | None:
    if escape[1] in "xXuU":
        return int(escape[2:], 16)
    return int(escape[1:], 8) if escape[1] in "0123" else None


# --- grammar ----------------------------------------------------------------------------------------------------


def parse(source: CelSource) -> SyntaxNode:
    """The tree of an expression. It is valid only if the source has no errors afterwards."""
    if len(source.text) > EXPRESSION_LENGTH_MAX:
        limit = f"size: {len(source.text)}, limit {EXPRESSION_LENGTH_MAX}"
        source.report(NOWHERE, f"expression code point size exceeds limit: {limit}")
        return InvalidNode(0)
    try:
        parser = _Parser(source, tokens_of(source.text))
        tree = parser.expression()
        parser.expect(END)
    except _SyntaxError as error:
        source.errors.clear()
        source.report(error.offset, f"Syntax error: {error}")
        return InvalidNode(0)
    except (_TooDeep, RecursionError):
        source.errors.clear()
        source.report(NOWHERE, NESTED_TOO_DEEPLY)
        return InvalidNode(0)
    return tree


class _SyntaxError(Exception):
    """The expression does not follow the grammar."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(text)
        self.offset = offset


class _TooDeep(Exception):
    """The expression is nested too deeply."""


def _unexpected(token: Token, expected: str) -> _SyntaxError:
    shown = "end of expression" if token.kind == END else f"'{escaped(token.text[:TOKEN_SHOWN_MAX])}'"
    return _SyntaxError(token.offset, f"unexpected {shown}, expected {expected}")


class _Parser:
    def __init__(self, source: CelSource, tokens: list[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.position = 0
        self.ahead = tokens[0].kind
        self.depth = 0

    # --- identifiers and keywords ---

    def take(self) -> Token:
        token = self.tokens[self.position]
        if token.kind is not END:
            self.position += 1
            self.ahead = self.tokens[self.position].kind
        return token

    def expect(self, kind: str) -> Token:
        if self.ahead != kind:
            raise _unexpected(self.tokens[self.position], _shown_kind(kind))
        return self.take()

    def take_if(self, kind: str) -> bool:
        if self.ahead != kind:
            return False
        self.take()
        return True

    # --- operators ---

    def expression(self) -> SyntaxNode:
        self.depth += 1
        if self.depth > NESTING_MAX:
            raise _TooDeep
        node = self._either()
        if self.ahead == "?":
            operator = self.take()
            if_true = self._either()
            self.expect(":")
            node = CallNode(operator.offset, CONDITIONAL, [node, if_true, self.expression()])
        self.depth -= 1
        return node

    def _either(self) -> SyntaxNode:
        node = self._both()
        if self.ahead != "||":
            return node
        offset, terms = self.tokens[self.position].offset, [node]
        while self.take_if("||"):
            terms.append(self._both())
        return CallNode(offset, OR, terms)

    def _both(self) -> SyntaxNode:
        node = self._binary(1)
        if self.ahead != "&&":
            return node
        offset, terms = self.tokens[self.position].offset, [node]
        while self.take_if("&&"):
            terms.append(self._binary(1))
        return CallNode(offset, AND, terms)

    def _binary(self, precedence_min: int) -> SyntaxNode:
        left = self._unary()
        length = 0
        while (precedence := _PRECEDENCE.get(self.ahead, 0)) >= precedence_min:
            length = self._longer(length)
            operator = self.take()
            left = CallNode(operator.offset, BINARY_OPERATORS[operator.kind], [left, self._binary(precedence + 1)])
        return left

    def _unary(self) -> SyntaxNode:
        sign = self.ahead
        if sign != "!" and sign != "-":
            return self._member()
        offset, count = self.tokens[self.position].offset, 0
        is_number = self.tokens[self.position + 1].kind in (INT, FLOAT)
        if sign == "-" and is_number:
            return self._member()
        while self.take_if(sign):
            count += 1
        operand = self._member(allows_sign=sign == "!")
        return CallNode(offset, NOT if sign == "!" else NEGATE, [operand]) if count % 2 else operand

    # --- members ---

    def _member(self, allows_sign: bool = True) -> SyntaxNode:
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

    def _after_dot(self, node: SyntaxNode) -> SyntaxNode:
        dot = self.take()
        is_optional = self.take_if("?")
        name = self.take()
        if name.kind == IDENTIFIER and self.ahead == "(" and not is_optional:
            bracket = self.take()
            return expanded(self.source, CallNode(bracket.offset, name.text, self._arguments(")"), node))
        if name.kind == ESCAPED_IDENTIFIER:
            return self._report(node.offset if is_optional else _start(node), "unsupported syntax: '`'")
        if name.kind != IDENTIFIER:
            raise _unexpected(name, "a name")
        if is_optional:
            return CallNode(dot.offset, OPTIONAL_SELECT, [node, Literal(name.offset, name.text)])
        return Select(dot.offset, node, name.text)

    def _indexed(self, node: SyntaxNode) -> SyntaxNode:
        bracket = self.take()
        function = OPTIONAL_INDEX if self.take_if("?") else INDEX
        index = self.expression()
        self.expect("]")
        return CallNode(bracket.offset, function, [node, index])

    def _arguments(self, end: str) -> list[SyntaxNode]:
        arguments: list[SyntaxNode] = []
        if self.ahead != end:
            arguments.append(self.expression())
            while self.take_if(","):
                arguments.append(self.expression())
        self.expect(end)
        return arguments

    # --- primaries ---

    def _primary(self, allows_sign: bool) -> SyntaxNode:
        token = self.take()
        if token.kind == IDENTIFIER:
            return self._named(token)
        match token.kind:
            case ".":
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

    def _named(self, token: Token) -> SyntaxNode:
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
            return expanded(self.source, CallNode(bracket.offset, spelled, arguments))
        if RESERVED_NAMES.fullmatch(name.text):
            return self._report(token.offset, f"reserved identifier: {name.text}")
        return Identifier(name.offset, spelled)

    def _literal(self, token: Token, allows_sign: bool) -> SyntaxNode:
        offset, is_negative = token.offset, False
        if token.kind == "-" and allows_sign and self.ahead in (INT, FLOAT):
            is_negative, token = True, self.take()
        try:
            return Literal(offset, _literal_value(token, is_negative))
        except LiteralError as error:
            return self._report(offset, str(error))

    def _list(self, bracket: Token) -> SyntaxNode:
        elements: list[SyntaxNode] = []
        optional: set[int] = set()
        for is_optional in self._entries("]"):
            if is_optional:
                optional.add(len(elements))
            elements.append(self.expression())
        return ListLiteral(bracket.offset, elements, frozenset(optional))

    def _map(self, bracket: Token) -> SyntaxNode:
        entries: list[MapEntry] = []
        for is_optional in self._entries("}"):
            key = self.expression()
            colon = self.expect(":")
            entries.append(MapEntry(colon.offset, key, self.expression(), is_optional))
        return MapLiteral(bracket.offset, entries)

    def _is_struct_ahead(self) -> bool:
        position = self.position
        while self.tokens[position].kind == "." and self.tokens[position + 1].kind == IDENTIFIER:
            position += 2
        return self.tokens[position].kind == "{"

    def _struct(self, offset: int, name: str) -> SyntaxNode:
        while self.take_if("."):
            name += f".{self.take().text}"
        bracket = self.take()
        fields: list[FieldEntry] = []
        for is_optional in self._entries("}"):
            field_name = self.take()
            if field_name.kind not in (IDENTIFIER, ESCAPED_IDENTIFIER):
                raise _unexpected(field_name, "a name")
            colon = self.expect(":")
            if field_name.kind == ESCAPED_IDENTIFIER:
                self._report(offset, "unsupported syntax: '`'")
            fields.append(FieldEntry(colon.offset, field_name.text, self.expression(), is_optional))
        return StructLiteral(bracket.offset, name, fields)

    def _entries(self, closing: str) -> Iterator[bool]:
        """Read the commas between the entries of a literal, and the closing bracket. The caller reads each entry.

        Yields whether the entry is optional: it begins with `?`.
        """
        is_first = True
        while self.ahead != closing:
            if not is_first or self.ahead == ",":
                self.expect(",")
                if self.ahead == closing:
                    break
                if is_first:
                    raise _unexpected(self.tokens[self.position], f"'{closing}'")
            is_first = False
            yield self.take_if("?")
        self.expect(closing)

    # --- limits and reports ---

    def _longer(self, length: int) -> int:
        if length >= NESTING_MAX:
            raise _TooDeep
        return length + 1

    def _report(self, offset: int, text: str) -> SyntaxNode:
        self.source.report(offset, text)
        return InvalidNode(offset)


def _literal_value(token: Token, is_negative: bool) -> Value:
    if token.kind == STRING:
        return string_literal(token.text)
    if token.kind == INT:
        return int_literal(token.text, is_negative)
    if token.kind == FLOAT:
        return float_literal(token.text, is_negative)
    if token.kind == UINT:
        return uint_literal(token.text)
    if token.kind == BYTES:
        return bytes_literal(token.text)
    raise _unexpected(token, "an expression")


def _start(node: SyntaxNode) -> int:
    """The offset at which a path of members begins."""
    while True:
        match node:
            case Select(operand=operand):
                node = operand
            case CallNode(target=SyntaxNode() as target):
                node = target
            case CallNode(function=function, arguments=[first, *_]) if function in (
                INDEX,
                OPTIONAL_INDEX,
                OPTIONAL_SELECT,
            ):
                node = first
            case _:
                return node.offset


def _shown_kind(kind: str) -> str:
    return {END: "end of expression", IDENTIFIER: "a name"}.get(kind, f"'{kind}'")
