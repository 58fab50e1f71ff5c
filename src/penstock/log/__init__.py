"""Records in order, never changed."""

from penstock.log.log import Log
from penstock.log.reader import Start
from penstock.log.records import Appended, EndOffset, Entry, Epoch, Place, Record
from penstock.log.topic import Topic
from penstock.log.writer import Limits

__all__ = ["Appended", "EndOffset", "Entry", "Epoch", "Limits", "Log", "Place", "Record", "Start", "Topic"]
