"""The scanner sees what Spark's lexer sees: comments, strings, names, and where a statement ends."""

import pytest

from penstock.errors import ModelError
from penstock.model.cursor import statements
from penstock.model.scanner import Source, string_text, string_value, tokens


def words(text: str) -> list[str]:
    return [token.text for token in tokens(Source("x.sql", text))]


def value(text: str) -> str:
    (token,) = tokens(Source("x.sql", text))
    return string_value(token)


@pytest.mark.parametrize(
    "text",
    [
        "a -- b\nc",
        "a /* b */ c",
        "a /* b /* b */ b */ c",
        "a -- b \\\n b\n c",
        "a /* ' */ c",
        "a /* -- */ c",
        "a -- /*\n c",
        "a /* /*+ b */ c",
    ],
)
def test_comments_are_left_out(text: str) -> None:
    assert words(text) == ["a", "c"]


def test_a_hint_is_no_comment() -> None:
    assert words("/*+ BROADCAST(a) */") == ["/*+", "BROADCAST", "(", "a", ")", "*/"]


@pytest.mark.parametrize(
    "text",
    [
        "'a;b'",
        '"a;b"',
        "'a'';b'",
        "'a\\';b'",
        '"a"";b"',
        "`a;b`",
        "`a``;b`",
        "r'a;\\'",
        'R"a;\\"',
        "$$a;b$$",
        "$t$;$$;$t$",
    ],
)
def test_nothing_in_quotes_ends_a_statement(text: str) -> None:
    assert [len(cursor.tokens) for cursor in statements(Source("x.sql", f"a {text}; b"))] == [2, 1]


def test_an_empty_statement_is_none() -> None:
    assert len(list(statements(Source("x.sql", ";; a ; -- b\n ;")))) == 1


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("'it''s'", "it's"),
        ("'it\\'s'", "it's"),
        ('"say ""a"""', 'say "a"'),
        ("\"it's ''\"", "it's ''"),
        (r"'\n\t\0\b\r\Z\\'", "\n\t\0\b\r\x1a\\"),
        (r"'\%\_\q'", r"\%\_q"),
        (r"'\u0041\U0001F600\uD83D\uDE00\101'", "A\U0001f600\U0001f600A"),
        (r"r'\n'", r"\n"),
        ("$$it's$$", "it's"),
        ("$a$b$a$", "b"),
    ],
)
def test_strings_mean_what_they_mean_in_spark(text: str, meaning: str) -> None:
    assert value(text) == meaning


@pytest.mark.parametrize("meaning", ["", "it's", '"', "\\", "\\'", "a\nb", "\\n", "\\%"])
def test_a_printed_string_means_what_was_printed(meaning: str) -> None:
    assert value(string_text(meaning)) == meaning


@pytest.mark.parametrize("text", ["'a", '"a', "`a", "'a\\'", "$$a", "/* a", "/* /* */"])
def test_what_does_not_end_is_shown_where_it_begins(text: str) -> None:
    with pytest.raises(ModelError) as error:
        words(f"b\n  {text}")
    assert error.value.spot is not None
    assert (error.value.spot.line, error.value.spot.column) == (2, 3)
