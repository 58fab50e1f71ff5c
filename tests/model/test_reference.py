"""The reference of declarations: every block of it is a pipeline, and what it lists is what there is."""

import re
from pathlib import Path

import pytest

from penstock.model import declaration_text, load_pipeline, pipeline_of
from penstock.model.options import READERS

PAGE = (Path(__file__).parents[2] / "docs/reference/declarations.md").read_text()
BLOCKS = re.findall(r"^```(sql|python)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("language", "text"), BLOCKS)
def test_every_block_is_a_pipeline(language: str, text: str, tmp_path: Path) -> None:
    suffix = {"sql": "sql", "python": "py"}[language]
    tmp_path.joinpath(f"pipeline.{suffix}").write_text(text)
    assert load_pipeline(tmp_path).relations


def test_the_first_two_blocks_declare_the_same_relations(tmp_path: Path) -> None:
    (_, sql), (_, python) = BLOCKS[:2]
    tmp_path.joinpath("shop.py").write_text(python)
    assert load_pipeline(tmp_path).relations == pipeline_of(sql).relations


def test_every_option_has_its_line() -> None:
    listed = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert listed == {word for words in READERS.values() for word in words}


def test_the_defaults_of_the_page_are_the_defaults() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|.*\| `?('?[\w ]+'?)`? \|$", PAGE.partition("## Options of the pipeline")[2], re.MULTILINE
    )
    literal = [(word, value) for word, value in rows if re.fullmatch(r"\d+|true|false|'.*'", value)]
    text = "".join(f"SET {word} = {value};" for word, value in literal)
    assert len(literal) == 5
    assert declaration_text(pipeline_of(text)) == declaration_text(pipeline_of(""))
