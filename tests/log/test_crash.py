"""Whatever kills the process or the power, and whenever: what was acknowledged is there once, the rest whole or not."""

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from penstock.errors import DamagedLog, LogError
from penstock.log import Limits, Log, Record
from penstock.log.disk import Disk
from penstock.log.frame import Found
from penstock.log.mark import Mark, read_mark
from penstock.log.recovery import SetAside
from penstock.log.stretch import Gap, read_prelude, scan
from tests.effort import SOAK, sample
from tests.log.disks import QuickDisk
from tests.log.dying import HOW, DyingDisk, in_child
from tests.log.power import FailingPower
from tests.log.story import STEPS, TOPICS, assert_goes_on, steps_in, take, tell
from tests.texts import assert_golden

FEW_FRAMES = Limits(stretch_frames=4)


def quick(folder: Path) -> Log:
    return Log.open(folder, disk=QuickDisk())


def last_stretch(folder: Path) -> Path:
    return max((folder / "journal").glob("[0-9]*.journal"))


def recovered(folder: Path) -> tuple[Log, list[SetAside]]:
    """Opens the log and hears what is newly set aside: exactly the bytes that its journal has no more. Opening it once
    more changes nothing."""
    before, known = journal_of(folder), set((folder / "aside").glob("*.json"))
    quick(folder).close()
    log = quick(folder)
    told = zip(sorted((folder / "aside").glob("*.json")), log.set_aside(), strict=True)
    fresh = {path: report for path, report in told if path not in known}
    for path, report in fresh.items():
        data = before[report.stretch][report.byte :]
        assert report.length == len(data) and path.with_suffix(".torn").read_bytes() == data
    after = journal_of(folder)
    cut = {stretch for stretch, data in before.items() if not after[stretch].startswith(data)}
    assert cut <= {report.stretch for report in fresh.values()}
    return log, list(fresh.values())


def journal_of(folder: Path) -> dict[int, bytes]:
    return {int(path.stem): path.read_bytes() for path in (folder / "journal").glob("[0-9]*.journal")}


# Cut at any byte


@pytest.fixture(scope="module")
def uncut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose story is told, in one open stretch; `stale` is its mark as it was after five steps."""
    folder = tmp_path_factory.mktemp("uncut") / "log"
    with quick(folder) as log:
        tell(log, lambda count: keep_mark(folder, count), seal=False)
    return folder


def keep_mark(folder: Path, count: int) -> None:
    if count == 5:
        shutil.copy(folder / "committed", folder / "stale")


def frames_in(path: Path) -> list[Found | Gap]:
    with open(path, "rb") as file:
        prelude = read_prelude(file.fileno())
        return list(scan(file.fileno(), prelude[1] if prelude else 0, path.stat().st_size))


def lay_mark(folder: Path, which: str) -> Mark | None:
    """The mark as it is, none, or an old one."""
    if which != "kept":
        (folder / "committed").unlink()
    if which == "stale":
        shutil.copy(folder / "stale", folder / "committed")
    return read_mark(folder / "committed")


@pytest.mark.parametrize("which", ["kept", "removed", "stale"])
def test_a_journal_cut_at_any_byte_keeps_every_whole_frame_and_reports_the_rest(
    uncut: Path, tmp_path: Path, which: str
) -> None:
    ends = [frames_in(last_stretch(uncut))[0].start, *(frame.end for frame in frames_in(last_stretch(uncut)))]
    near = [end + by for end in ends[::5] for by in (-1, 0, 1)]
    size = last_stretch(uncut).stat().st_size
    for byte in sample(range(size), 6, always=[0, *near]):
        folder = tmp_path / str(byte)
        shutil.copytree(uncut, folder)
        os.truncate(last_stretch(folder), byte)
        mark = lay_mark(folder, which)
        log, reports = recovered(folder)
        with log:
            kept = [end for end in ends if end <= byte][1:]
            assert steps_in(log) == max(0, len(kept) - len(TOPICS))
            assert_told(reports, byte, [0, *ends], mark)
            assert log.mark().next_frame == max(len(kept), mark.next_frame if mark else 0)
            if byte in near or byte % 50 == 0:
                tell(log, seal=False)
                assert steps_in(log) == STEPS
        shutil.rmtree(folder)


def assert_told(reports: list[SetAside], byte: int, ends: list[int], mark: Mark | None) -> None:
    """What was cut off is told, and that committed frames are lost where they are. `ends`: of prelude and frames."""
    end = max(each for each in ends if each <= byte)
    frame = max(0, ends.index(end) - 1)
    lost = mark is not None and mark.end > byte
    assert len(reports) == (byte > end or lost)
    for report in reports:
        assert (report.byte, report.length, report.frame) == (end, byte - end, frame)
        assert report.committed == lost
        assert report.lost == ((frame, mark.next_frame) if mark and lost else None)


def test_a_torn_frame_is_kept_aside_and_its_topics_partitions_and_offsets_are_told(uncut: Path, tmp_path: Path) -> None:
    shutil.copytree(uncut, tmp_path / "log")
    *_, (start, end) = [(frame.start, frame.end) for frame in frames_in(last_stretch(uncut))]
    os.truncate(last_stretch(tmp_path / "log"), end - 1)
    lay_mark(tmp_path / "log", "stale")
    log, (report,) = recovered(tmp_path / "log")
    with log:
        assert (report.stretch, report.byte, report.length, report.frame) == (0, start, end - 1 - start, 12)
        assert {(span.topic, span.partition) for span in report.spans} == {("a", 0), ("a", 1)}
        assert [span.base for span in report.spans] == list(log.ends("a"))
        assert_golden(
            "log/set-aside", str(report).replace(f"{report.length} bytes at byte {start}", "N bytes at byte M")
        )


def test_a_report_that_is_damaged_is_refused_as_one(uncut: Path, tmp_path: Path) -> None:
    shutil.copytree(uncut, tmp_path / "log")
    os.truncate(last_stretch(tmp_path / "log"), last_stretch(uncut).stat().st_size - 5)
    log, _ = recovered(tmp_path / "log")
    with log:
        (report,) = (tmp_path / "log" / "aside").glob("*.json")
        report.write_bytes(report.read_bytes()[1:])
        with pytest.raises(DamagedLog, match="cannot be read"):
            log.set_aside()


@pytest.mark.parametrize("where", [1, 40, -60, -1])
def test_a_damaged_last_frame_beyond_the_mark_is_set_aside(uncut: Path, tmp_path: Path, where: int) -> None:
    shutil.copytree(uncut, tmp_path / "log")
    path = last_stretch(tmp_path / "log")
    data = bytearray(path.read_bytes())
    last = frames_in(path)[-1]
    data[last.start + where if where > 0 else last.end + where] ^= 1
    path.write_bytes(data)
    lay_mark(tmp_path / "log", "removed")
    log, (report,) = recovered(tmp_path / "log")
    with log:
        assert steps_in(log) == STEPS - 1
        assert (report.byte, report.length, report.committed) == (last.start, last.end - last.start, False)
        assert [(span.topic, span.count) for span in report.spans] == [("a", 3)] or len(report.spans) == 2
        assert_goes_on(log)


def test_a_last_frame_that_is_all_gone_is_told_even_if_the_mark_is_right(uncut: Path, tmp_path: Path) -> None:
    shutil.copytree(uncut, tmp_path / "log")
    path = last_stretch(tmp_path / "log")
    last = frames_in(path)[-1]
    path.write_bytes(path.read_bytes()[: last.start] + bytes(last.end - last.start))
    log, (report,) = recovered(tmp_path / "log")
    with log:
        assert report.committed and report.lost == (12, 13)
        assert steps_in(log) == STEPS - 1
        assert take(log, STEPS - 1).frame == 13


def test_frames_are_numbered_on_after_lost_ones_even_through_a_second_crash(uncut: Path, tmp_path: Path) -> None:
    shutil.copytree(uncut, tmp_path / "log")
    path = last_stretch(tmp_path / "log")
    os.truncate(path, frames_in(path)[-1].start)
    quick(tmp_path / "log").close()
    path.write_bytes(path.read_bytes() + b"torn")
    log, (report,) = recovered(tmp_path / "log")
    with log:
        assert report.frame == 13 and not report.committed
        assert take(log, STEPS - 1).frame == 13


def test_a_torn_frame_that_holds_whole_frames_in_its_records_is_still_torn(tmp_path: Path) -> None:
    with quick(tmp_path / "log") as log:
        tell(log, seal=False)
        inner = last_stretch(tmp_path / "log").read_bytes()
        log.append("raw", [Record(inner[24 + at :]) for at in range(8)])
    path = last_stretch(tmp_path / "log")
    for cut in (8, 1000, len(inner) * 3):
        shutil.copytree(tmp_path / "log", tmp_path / str(cut))
        os.truncate(last_stretch(tmp_path / str(cut)), path.stat().st_size - cut)
        lay_mark(tmp_path / str(cut), "removed")
        log, reports = recovered(tmp_path / str(cut))
        with log:
            assert steps_in(log) == STEPS and len(reports) == 1


# Killed at any point


def tell_all(told: Callable[[int], None], folder: Path, disk: Disk, limits: Limits) -> None:
    with Log.open(folder, disk=disk, limits=limits) as log:
        tell(log, told)


def seal(_: Callable[[int], None], folder: Path, disk: Disk) -> None:
    with Log.open(folder, disk=disk) as log:
        log.seal()


def open_and_close(_: Callable[[int], None], folder: Path, disk: Disk) -> None:
    Log.open(folder, disk=disk).close()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("limits", [Limits(), FEW_FRAMES], ids=["seldom", "often"])
def test_a_process_killed_at_any_operation_loses_nothing_acknowledged_and_doubles_nothing(
    tmp_path: Path, limits: Limits, how: str
) -> None:
    counting = DyingDisk(nth=0)
    tell_all(print, tmp_path / "counted", counting, limits)
    for nth in sample(range(1, counting.done + 1), 5):
        folder = tmp_path / str(nth)
        acknowledged, _ = in_child(tell_all, folder, DyingDisk(nth, how), limits)
        with quick(folder) as log:
            assert acknowledged <= steps_in(log) <= acknowledged + 1
            assert_goes_on(log)
            assert not list((folder / "staged").iterdir()) or acknowledged < STEPS
        shutil.rmtree(folder)


@pytest.mark.parametrize("how", HOW)
def test_sealing_killed_at_any_operation_is_finished_by_the_next(tmp_path: Path, how: str) -> None:
    with quick(tmp_path / "log") as log:
        tell(log, seal=False)
    counting = DyingDisk(nth=0)
    shutil.copytree(tmp_path / "log", tmp_path / "counted")
    seal(print, tmp_path / "counted", counting)
    for nth in sample(range(1, counting.done + 1), 6):
        folder = tmp_path / str(nth)
        shutil.copytree(tmp_path / "log", folder)
        _, killed = in_child(seal, folder, DyingDisk(nth, how))
        assert killed
        with quick(folder) as log:
            assert steps_in(log) == STEPS
            assert log.seal() == 0
            assert steps_in(log) == STEPS
        assert {path.name for path in (folder / "sealed").iterdir()} == {f"{0:020}"}
        assert not list((folder / "staged").iterdir()) and len(list((folder / "journal").glob("[0-9]*"))) == 1


@pytest.mark.parametrize("how", HOW)
def test_a_recovery_killed_at_any_operation_is_finished_by_the_next(uncut: Path, tmp_path: Path, how: str) -> None:
    shutil.copytree(uncut, tmp_path / "torn")
    os.truncate(last_stretch(tmp_path / "torn"), last_stretch(uncut).stat().st_size - 5)
    lay_mark(tmp_path / "torn", "stale")
    torn = last_stretch(tmp_path / "torn").read_bytes()[frames_in(last_stretch(uncut))[-1].start :]
    counting = DyingDisk(nth=0)
    shutil.copytree(tmp_path / "torn", tmp_path / "counted")
    open_and_close(print, tmp_path / "counted", counting)
    for nth in sample(range(1, counting.done + 1), 5):
        folder = tmp_path / str(nth)
        shutil.copytree(tmp_path / "torn", folder)
        assert in_child(open_and_close, folder, DyingDisk(nth, how)) == (0, True)
        with quick(folder) as log:
            assert steps_in(log) == STEPS - 1
            reports = log.set_aside()
            assert 1 <= len(reports) <= 2 and {report.length for report in reports} == {len(torn)}
        assert {path.read_bytes() for path in (folder / "aside").glob("*.torn")} == {torn}


# Power lost


@pytest.mark.parametrize("limits", [Limits(), FEW_FRAMES], ids=["seldom", "often"])
def test_after_a_power_failure_at_any_operation_everything_acknowledged_is_there(
    tmp_path: Path, limits: Limits
) -> None:
    acknowledged = 0
    images: list[tuple[Path, int]] = []
    random = Random(1)

    def watch(disk: FailingPower) -> None:
        for seed in range(4 if SOAK else 1):
            if SOAK or random.random() < 0.12:
                images.append((tmp_path / f"{disk.done}-{seed}", acknowledged))
                disk.image(images[-1][0], random)

    def told(count: int) -> None:
        nonlocal acknowledged
        acknowledged = count

    (tmp_path / "disk").mkdir()
    with Log.open(
        tmp_path / "disk" / "deep" / "log", disk=FailingPower(tmp_path / "disk", watch), limits=limits
    ) as log:
        tell(log, told)
    for image, count in images:
        folder = image / "deep" / "log"
        assert count == 0 or folder.exists()
        with recovered(folder)[0] if (folder / "aside").exists() else quick(folder) as log:
            assert count <= steps_in(log) <= count + 1
            assert_goes_on(log)
        shutil.rmtree(image)


def test_what_a_full_disk_left_half_written_does_not_come_back_with_the_power(tmp_path: Path) -> None:
    class Both(FailingPower):
        full = False

        def write(self, file: int, pieces: Sequence[bytes], at: int) -> None:
            super().write(file, [b"".join(pieces)[:100]] if self.full else pieces, at)
            if self.full:
                raise OSError(errno.ENOSPC, "full")

    (tmp_path / "disk").mkdir()
    disk = Both(tmp_path / "disk")
    with Log.open(tmp_path / "disk" / "log", disk=disk) as log:
        tell(log, seal=False)
        disk.full = True
        with pytest.raises(LogError):
            log.append("raw", [b"x" * 1000])
        disk.full = False
        log._writer.roll()
        for seed in range(20):
            disk.image(tmp_path / str(seed), Random(seed))
    for seed in range(20):
        with quick(tmp_path / str(seed) / "log") as log:
            assert steps_in(log) == STEPS
            assert log.seal() == 0
