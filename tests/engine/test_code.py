"""The code of Python functions: the same digest in every process, another one when a function does something else."""

import os
import subprocess
import sys
from typing import Any

import pytest

TEXT = """
import json
import re
from decimal import Decimal
from functools import partial
from pyspark import cloudpickle
from penstock.engine.code import code_digest

WORDS = {"a", "b", "c"}
SHAPE = re.compile("x+")
TAX = Decimal("0.19")
HALF = partial(divmod, 7)

class Base:
    def inherited(self):
        return 70

class Slotted:
    __slots__ = ("held",)
    def __init__(self):
        self.held = 71

SLOTTED = Slotted()

class Rule(Base):
    limit = 3
    @staticmethod
    def still():
        return 72
    def bound(self):
        return 73
    def __call__(self, x):
        return x in {"u", "v", "w"} and x not in WORDS
    @property
    def most(self):
        return 9

def made(rule, other=json.dumps):
    def call(x, *, least=1):
        return call(other(x)) if rule(x) else rule.limit + least + rule.most
    reached = (SHAPE, TAX, HALF, SLOTTED, rule.bound)
    return lambda x: (call(x), reached)

digest = code_digest(cloudpickle.dumps((made(Rule()), "int")))
"""


def printed(text: str, seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", f"{text}\nprint(digest)"]
    return subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout


def digest(text: str) -> str:
    """In this process, in a module that nobody can import."""
    names: dict[str, Any] = {"__name__": "elsewhere"}
    exec(text, names)
    return str(names["digest"])


def test_the_digest_is_the_same_in_every_process() -> None:
    assert printed(TEXT, "1") == printed("\n# moved\n" + TEXT, "2")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("limit = 3", "limit = 4"),
        ('"w"}', '"z"}'),
        ('"c"}', '"d"}'),
        ("return 9", "return 8"),
        ("json.dumps", "json.loads"),
        ("least=1", "least=2"),
        ("else rule.limit +", "else rule.limit -"),
        ('"int"', '"bigint"'),
        ('"x+"', '"y+"'),
        ("0.19", "0.07"),
        ("divmod, 7", "divmod, 8"),
        *((f"return {n}" if n != 71 else f"held = {n}", "return 0" if n != 71 else "held = 0") for n in range(70, 74)),
    ],
)
def test_what_a_function_reaches_counts(old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert digest(TEXT) == digest(TEXT) != digest(TEXT.replace(old, new))
