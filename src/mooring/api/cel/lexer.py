"""The lexer: from the letters of an expression to its words.

Comes in   a `Source`
Goes out   tokens, the last one of kind END; letters that are no token are reported to the source and passed over

 1. The longest token wins; white space and comments disappear.
 2. Texts and numbers are interpreted by the parser: a token is what was written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mooring.api.cel.source import Source

END = "<EOF>"
FLOAT, INT, UINT = "NUM_FLOAT", "NUM_INT", "NUM_UINT"
STRING, BYTES, IDENTIFIER, ESCAPED_IDENTIFIER = "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER"

KEYWORDS = frozenset({"in", "true", "false", "null"})

_STRING_BODY = r"""
      [rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n\r]*\"|'[^'\n\r]*')
    | \"\"\"(?:{escape}|[^\\])*?\"\"\" | '''(?:{escape}|[^\\])*?'''
    | \"(?:{escape}|[^\\\"\n\r])*\" | '(?:{escape}|[^\\'\n\r])*'
"""
_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7])"""
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
    """.replace("{escape}", _ESCAPE),
    re.VERBOSE,
)
# How far an unfinished token reaches before the letter at which it fails.
_UNFINISHED = re.compile(
    rf"""[bB]?[rR]?(?:\"\"\"(?:{_ESCAPE}|[^\\])* | '''(?:{_ESCAPE}|[^\\])*
    | \"(?:{_ESCAPE}|[^\\\"\n\r])* | '(?:{_ESCAPE}|[^\\'\n\r])*)\\? | `[A-Za-z0-9_.\-/\ ]* | [&|=]""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    offset: int


def tokens_of(source: Source) -> list[Token]:
    """Every token of the source, and the end."""
    text = source.text
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            position = _report_unknown(source, position)
            continue
        kind = match.lastgroup
        if kind == "symbol" or (kind == IDENTIFIER and match[0] in KEYWORDS):
            found.append(Token(match[0], match[0], position))
        elif kind is not None and kind != "space":
            found.append(Token(kind, match[0], position))
        position = match.end()
    found.append(Token(END, END, len(text)))
    return found


def _report_unknown(source: Source, start: int) -> int:
    unfinished = _UNFINISHED.match(source.text, start)
    end = (unfinished.end() if unfinished else start) + 1
    source.report(start, f"Syntax error: token recognition error at: '{escaped(source.text[start:end])}'")
    return end


def escaped(text: str) -> str:
    """A piece of the source, as an error text shows it."""
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
