"""Spark's texts without what is for programs."""

import pytest

from penstock.engine.wording import plain_text


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            "[PARSE_SYNTAX_ERROR] Syntax error at 'x'. SQLSTATE: 42601 (line 1, pos 14)\n\n== SQL ==\nx",
            "Syntax error at 'x'.",
        ),
        (
            "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [CAST_INVALID_INPUT] The value 'x'"
            " cannot be cast. SQLSTATE: 22018\n== SQL ==\nSELECT\n\nJVM stacktrace:\norg.apache.spark",
            "The value 'x' cannot be cast.",
        ),
        ("[DIVIDE_BY_ZERO] Division by zero.\nUse try_divide. SQLSTATE: 22012", "Division by zero."),
        ("It is [so].", "It is [so]."),
        ("", ""),
    ],
)
def test_codes_states_and_positions_are_left_out(text: str, want: str) -> None:
    assert plain_text(text) == want
