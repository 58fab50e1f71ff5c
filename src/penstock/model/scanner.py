"""The tokens of a pipeline's SQL text, by the rules of Spark's own lexer.

Comments (`--`, and `/* */` which nest) and white space are left out; hints (`/*+ */`) are not comments. Strings, names
in backquotes and dollar-quoted text are one token each, so that nothing inside them ends a statement. Every token knows
its place.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from penstock.errors import ModelError, Spot

TokenKind = Literal["word", "quoted", "string", "number", "symbol"]
TOKEN = re.compile(
    r"""
      (?P<blank>  \s+ | --(?:\\\n|[^\r\n])* )
    | (?P<string> [rR]'[^']*' | [rR]"[^"]*"
                | '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+"
                | (?P<tag>\$[A-Za-z]*\$).*?(?P=tag) )
    | (?P<quoted> `(?:[^`]|``)*+` )
    | (?P<number> (?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?!\w) )
    | (?P<word>   [^\W\d_]+://[\w/.?=&\#%-]+ | \w+ )
    | (?P<symbol> /\*\+ | \*/ | \$[A-Za-z]*\$ | . )
    """,
    re.VERBOSE | re.DOTALL,
)
COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
# What stands in a string after a backslash, where it is not simply itself.
ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))|(''|\"\")", re.DOTALL)
ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
UNENDED = {"'": "a string", '"': "a string", "`": "a name in backquotes", "$": "a text in dollars"}


@dataclass(frozen=True)
class Source:
    """A text and the name of its file."""

    file: str
    text: str


@dataclass(frozen=True)
class Token:
    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def spot_at(source: Source, offset: int) -> Spot:
    """The place of a character; lines end at a line feed and at nothing else, as Spark counts them."""
    first = source.text.rfind("\n", 0, offset) + 1
    last = source.text.find("\n", offset)
    line = source.text[first : last if last >= 0 else len(source.text)]
    return Spot(source.file, source.text.count("\n", 0, offset) + 1, offset - first + 1, line.rstrip("\r"))


def tokens(source: Source) -> Iterator[Token]:
    at = 0
    while at < len(source.text):
        if source.text.startswith("/*", at) and not source.text.startswith("/*+", at):
            at = _comment_end(source, at)
            continue
        found = TOKEN.match(source.text, at)
        assert found is not None, "the last alternative takes any character"
        if found["symbol"] is not None and found[0][0] in UNENDED:
            raise ModelError(f"{UNENDED[found[0][0]]} does not end", spot=spot_at(source, at))
        if found["blank"] is None:
            yield Token(_kind(found), found[0], at)
        at = found.end()


def string_value(token: Token) -> str:
    """What a string token means: the text inside its quotes, unescaped as Spark does it."""
    text = token.text
    if text[0] == "$":
        tag = text.index("$", 1) + 1
        return text[tag:-tag]
    if text[0] in "rR":
        return text[2:-1]
    value = ESCAPE.sub(lambda found: _unescaped(found, text[0]), text[1:-1])
    # Two escapes may be the halves of one character.
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def string_text(value: str) -> str:
    """The string token that means `value`."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def name_value(token: Token) -> str:
    """What a word or a name in backquotes names."""
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text


def _kind(found: re.Match[str]) -> TokenKind:
    kinds: tuple[TokenKind, ...] = ("word", "quoted", "string", "number", "symbol")
    return next(kind for kind in kinds if found[kind] is not None)


def _unescaped(found: re.Match[str], quote: str) -> str:
    short, long, octal, other, doubled = found.groups()
    if doubled:
        return quote if doubled[0] == quote else doubled
    if octal:
        return chr(int(octal, 8))
    if short or long:
        return chr(min(int(short or long, 16), 0x10FFFF))
    return ESCAPED.get(other, other)


def _comment_end(source: Source, start: int) -> int:
    depth = 0
    for edge in COMMENT_EDGE.finditer(source.text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise ModelError(
        "a comment does not end", hint="Comments nest: every /* needs its */.", spot=spot_at(source, start)
    )
