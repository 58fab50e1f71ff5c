"""Without the package that an extra brings, its store says which one is missing."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
sys.modules[{module!r}] = None
try:
    import penstock.views.{store}
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize(("store", "module"), [("postgres", "psycopg"), ("redis", "redis")])
def test_a_store_without_its_client_is_refused(store: str, module: str) -> None:
    script = SCRIPT.format(module=module, store=store)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "client is not installed" in done.stdout
    assert f"hint:   pip install 'penstock[{store}]'" in done.stdout
