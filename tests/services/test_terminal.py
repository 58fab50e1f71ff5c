"""Services are started and stopped from a terminal, which says what was done."""

import os
from pathlib import Path

import pytest

from services.jars import ServiceError
from services.redis import server_in
from services.terminal import command, start, stop


@pytest.mark.redis
def test_a_service_is_started_once_and_stopped_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        server = server_in(tmp_path, dies_with_us=True)
    except ServiceError as error:
        if os.environ.get("PENSTOCK_SERVICES") == "required":
            raise
        pytest.skip(f"no Redis: {error.primary}")
    capsys.readouterr()
    for _ in range(2):
        assert command(["start"], "", start=lambda: start("Redis", server, lambda: "HERE"), stop=pytest.fail) == 0
    for _ in range(2):
        stopped = lambda: stop("Redis", tmp_path / "server.pid", lambda: server)  # noqa: E731
        assert command(["stop"], "", start=pytest.fail, stop=stopped) == 0
    said = ["starting Redis", "Redis is ready: HERE", "Redis runs already: HERE", "Redis is stopped"]
    assert capsys.readouterr().out.splitlines() == [*said, "Redis does not run"]


def test_what_never_ran_is_not_fetched_to_be_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stop("Redis", tmp_path / "server.pid", lambda: pytest.fail("it was fetched"))
    assert capsys.readouterr().out == "Redis does not run\n"


def test_another_word_gets_the_usage_and_an_error_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise ServiceError("it cannot be had", detail="No.", hint="Look elsewhere.")

    assert command(["begin"], "the usage", start=pytest.fail, stop=pytest.fail) == 2
    assert command(["start"], "", start=fails, stop=pytest.fail) == 1
    assert capsys.readouterr().err == "the usage\nit cannot be had\n  detail: No.\n  hint:   Look elsewhere.\n"
