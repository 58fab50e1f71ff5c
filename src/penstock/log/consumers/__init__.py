"""Who reads the log, and how far each has come."""

from penstock.log.consumers.consumers import Consumers
from penstock.log.consumers.group import Group, Lag
from penstock.log.consumers.member import Member
from penstock.log.consumers.queue import Delivering, Queue, QueueState
from penstock.log.consumers.terms import Terms
from penstock.log.consumers.worker import Message, Worker

__all__ = ["Consumers", "Delivering", "Group", "Lag", "Member", "Message", "Queue", "QueueState", "Terms", "Worker"]
