"""One statement's tokens, read from left to right, with the place for errors."""

from collections.abc import Iterator, Sequence

from penstock.errors import ModelError, Spot
from penstock.model.scanner import Source, Token, name_value, spot_at, tokens


def statements(source: Source) -> Iterator["Cursor"]:
    """The statements that stand between semicolons; empty ones are left out."""
    found: list[Token] = []
    for token in tokens(source):
        if token.kind == "symbol" and token.text == ";":
            if found:
                yield Cursor(source, found, token.start)
            found = []
        else:
            found.append(token)
    if found:
        yield Cursor(source, found, found[-1].end)


class Cursor:
    """Keywords are compared regardless of case, and never with what stands in quotes."""

    def __init__(self, source: Source, found: Sequence[Token], end: int) -> None:
        self.source = source
        self.tokens = found
        self.end = end
        self.number = 0

    def peek(self) -> Token | None:
        return self.tokens[self.number] if self.number < len(self.tokens) else None

    def at(self, *words: str) -> bool:
        following = self.tokens[self.number : self.number + len(words)]
        return [t.text.upper() if t.kind in ("word", "symbol") else "" for t in following] == list(words)

    def accept(self, *words: str) -> bool:
        if self.at(*words):
            self.number += len(words)
            return True
        return False

    def expect(self, word: str, *, hint: str = "") -> None:
        if not self.accept(word):
            raise self.error(f'expected "{word}", found {self.shown()}', hint=hint)

    def expect_end(self) -> None:
        if self.peek() is not None:
            raise self.error(f"unexpected {self.shown()}", hint="A statement ends with a semicolon.")

    def next(self, expected: str) -> Token:
        token = self.peek()
        if token is None:
            raise self.error(f"expected {expected}, found {self.shown()}")
        self.number += 1
        return token

    def identifier(self, expected: str) -> str:
        """A word, or a name in backquotes."""
        token = self.peek()
        if token is None or token.kind not in ("word", "quoted") or not name_value(token):
            raise self.error(f"expected {expected}, found {self.shown()}")
        self.number += 1
        return name_value(token)

    def rest(self) -> Sequence[Token]:
        """All that is left."""
        left = self.tokens[self.number :]
        self.number = len(self.tokens)
        return left

    def spot(self) -> Spot:
        """The place of the next token, or of the statement's end."""
        token = self.peek()
        return spot_at(self.source, self.end if token is None else token.start)

    def shown(self) -> str:
        token = self.peek()
        if token is None:
            return "the end of the statement"
        return f'"{token.text}"' if len(token.text) <= 40 else f'"{token.text[:40]}..."'

    def error(self, primary: str, *, detail: str = "", hint: str = "") -> ModelError:
        return ModelError(primary, detail=detail, hint=hint, spot=self.spot())
