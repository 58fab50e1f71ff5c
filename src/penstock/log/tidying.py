"""Tidying: files of sealed stretches that nothing refers to any more are removed.

Whatever else changes sealed files commits first and removes after; killed between, it leaves such files here. Runs
under the sealers' lock.
"""

from penstock.log.catalog import Catalog
from penstock.log.disk import Disk
from penstock.log.expiry import is_kept
from penstock.log.journal import Journal


def tidy(journal: Journal, catalog: Catalog, first: int, disk: Disk) -> int:
    """Removes what a sealed stretch does not need; how many files."""
    stretch = journal.reopened(first)
    if not stretch.sealed or not stretch.prelude or stretch.unlisted:
        return 0
    kept = {found["name"] for found in stretch.files if is_kept(catalog, found)}
    unused = [path for path in sorted(stretch.folder.glob("*.arrow")) if path.name not in kept]
    for path in unused:
        disk.remove(path)
    return len(unused)
