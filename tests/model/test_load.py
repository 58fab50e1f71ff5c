"""A folder becomes a pipeline: which files count, under which name, and what they may import."""

import os
import sys
from pathlib import Path

import pytest

from penstock.errors import ModelError
from penstock.model import Function, load_pipeline
from tests.texts import refused

STREAM = "CREATE STREAM {} (id INT);"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("shop").mkdir()
    return Path("shop")


def write(folder: Path, **files: str) -> None:
    """`a_sql` stands for a.sql."""
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        folder.joinpath(f"{stem}.{suffix}").write_text(text)


def relations(path: Path) -> list[str]:
    return [relation.name for relation in load_pipeline(path).relations]


def test_files_of_both_languages_count_in_the_order_of_their_names(shop: Path) -> None:
    write(
        shop, c_sql=STREAM.format("c"), a_sql=STREAM.format("a"), b_py="import penstock as ps\nps.stream('b', 'id INT')"
    )
    assert relations(shop) == ["a", "b", "c"]


def test_hidden_and_private_files_other_suffixes_and_folders_do_not_count(shop: Path) -> None:
    write(shop, a_sql=STREAM.format("a"), _b_sql=STREAM.format("b"), _c_py="1 / 0", d_txt="nonsense")
    shop.joinpath(".e.sql").write_text("nonsense")
    shop.joinpath("tests").mkdir()
    write(shop / "tests", f_sql="nonsense")
    assert relations(shop) == ["a"]


def test_a_single_file_is_a_pipeline(shop: Path) -> None:
    write(shop, a_sql=STREAM.format("a"), b_sql=STREAM.format("b"))
    assert relations(shop / "b.sql") == ["b"]


def test_a_pipeline_has_the_name_of_its_folder_or_file(shop: Path) -> None:
    write(shop, pipeline_sql=STREAM.format("a"), small_sql=STREAM.format("b"))
    paths = [shop, shop / "pipeline.sql", shop / "small.sql", shop.resolve(), shop / ".." / "shop"]
    assert [load_pipeline(path).name for path in paths] == ["shop", "shop", "small", "shop", "shop"]
    os.chdir(shop)
    assert load_pipeline(Path()).name == "shop"


def test_a_pipeline_knows_its_folder(shop: Path) -> None:
    write(shop, pipeline_sql=STREAM.format("a"))
    assert load_pipeline(shop).folder == load_pipeline(shop / "pipeline.sql").folder == shop


def test_a_byte_order_mark_is_no_part_of_the_text(shop: Path) -> None:
    shop.joinpath("a.sql").write_bytes(b"\xef\xbb\xbf" + STREAM.format("a").encode())
    assert relations(shop) == ["a"]


def test_a_python_file_can_import_what_lies_beside_it(shop: Path) -> None:
    write(
        shop,
        _names_py="NAME = 'first'",
        a_py="import penstock as ps\nfrom _names import NAME\nps.stream(NAME, 'id INT')",
    )
    assert relations(shop) == ["first"]


def test_two_pipelines_can_have_helpers_of_one_name(shop: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for folder, name in ((shop, "first"), (other, "second")):
        write(folder, _names_py=f"def name():\n    return {name!r}")
        write(folder, a_py="import penstock as ps\nimport _names\nps.stream(_names.name(), 'id INT')")
    assert relations(shop) + relations(other) == ["first", "second"]


def test_loading_leaves_no_trace_in_the_process(shop: Path) -> None:
    write(shop, _names_py="NAME = 'a'", a_py="import penstock as ps\nimport _names\nps.stream(_names.NAME, 'id INT')")
    before = list(sys.path), set(sys.modules)
    load_pipeline(shop)
    assert (list(sys.path), set(sys.modules)) == before


def test_a_view_still_has_its_helpers_when_it_is_called(shop: Path) -> None:
    write(shop, _half_py="def half(x):\n    return x / TWO\n\nTWO = 2")
    write(shop, a_py="import penstock as ps\nimport _half\n\n@ps.view\ndef v(spark):\n    return _half.half(spark)")
    query = load_pipeline(shop).view("v").query
    assert isinstance(query, Function)
    assert query.call(42) == 21


def test_a_python_file_is_not_the_main_program(shop: Path) -> None:
    write(shop, a_py="import penstock as ps\nps.stream('a', 'id INT')\nif __name__ == '__main__':\n    1 / 0")
    assert relations(shop) == ["a"]


def test_a_python_file_can_have_dataclasses(shop: Path) -> None:
    text = "from __future__ import annotations\nfrom dataclasses import dataclass, KW_ONLY\nimport penstock as ps\n"
    write(shop, a_py=text + "@dataclass\nclass A:\n    _: KW_ONLY\n    a: int\nps.stream('a', 'id INT')")
    assert relations(shop) == ["a"]


def test_the_same_name_in_two_files_is_refused(shop: Path) -> None:
    write(shop, a_sql=STREAM.format("orders"), b_sql="\n" + STREAM.format("ORDERS"))
    with refused("model/name-twice-in-two-files"):
        load_pipeline(shop)


def test_a_mistake_in_a_helper_is_shown_there(shop: Path) -> None:
    write(shop, _names_py="\n1 / 0", a_py="import _names")
    with pytest.raises(ModelError) as error:
        load_pipeline(shop)
    assert error.value.spot is not None
    assert (Path(error.value.spot.file).name, error.value.spot.line) == ("_names.py", 2)


def test_a_folder_that_is_not_there_is_refused(shop: Path) -> None:
    with refused("model/folder-missing"):
        load_pipeline(Path("shpo"))


def test_a_folder_without_files_is_refused(shop: Path) -> None:
    with refused("model/folder-empty"):
        load_pipeline(shop)


def test_files_without_declarations_are_refused(shop: Path) -> None:
    write(shop, a_sql="-- nothing yet\nSET ansi = true;", b_py="x = 1")
    with refused("model/folder-declares-nothing"):
        load_pipeline(shop)


def test_a_file_of_another_kind_is_refused(shop: Path) -> None:
    write(shop, a_txt="")
    with refused("model/file-of-another-kind"):
        load_pipeline(shop / "a.txt")


def test_a_file_in_another_encoding_is_refused(shop: Path) -> None:
    shop.joinpath("a.sql").write_bytes("-- \n-- größer\n".encode("latin-1"))
    with refused("model/file-not-utf8"):
        load_pipeline(shop)


def test_a_folder_whose_name_no_pipeline_can_have_is_refused(shop: Path) -> None:
    folder = shop.rename("my shop")
    write(folder, a_sql=STREAM.format("a"))
    with refused("model/folder-name"):
        load_pipeline(folder)
