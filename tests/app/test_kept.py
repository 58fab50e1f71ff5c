"""Where records are kept no longer, what would need them is refused; a run that goes on needs none."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.app.test_pipelines import PENSTOCK, Shop, customer, order, spend
from tests.texts import assert_golden

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path, f"PENSTOCK_PIPELINES_TEST={os.getpid()}-{tmp_path.name}")
    shop.run("init", "shop")
    return shop


def refused(shop: Shop, *arguments: str) -> str:
    ran = subprocess.run(
        [*PENSTOCK, *arguments], cwd=shop.folder, env=shop.surroundings, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1, ran.stderr
    return ran.stderr.strip()


@pytest.mark.timeout(600)  # Spark is started four times
def test_verify_and_reset_name_the_first_record_that_is_missing_and_a_run_goes_on(shop: Shop) -> None:
    shop.append("customers", customer(1, "Rome"))
    shop.append("orders", order(1, 1, "12.50"), order(2, 1, "30.00"))
    shop.run("run", "shop", "--once")
    log = ["--log", "shop/.penstock/log"]
    shop.run("log", "retain", "orders", "--for", "0 seconds", *log)
    shop.run("log", "retain", "orders", "--forever", *log)
    assert_golden("app/verify_what_is_gone", refused(shop, "verify", "--pipeline", "shop"))
    assert "the first that is missing is offset 0" in refused(shop, "reset", "shop")
    shop.append("orders", order(3, 1, "7.50"))
    shop.run("run", "shop", "--once")
    assert shop.spend() == spend(("Rome", 3, "50.00"))
