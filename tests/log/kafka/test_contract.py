"""The log on Kafka keeps the contract of every log."""

from tests.log.contract import *  # noqa: F403
from tests.log.contract_appends import *  # noqa: F403
from tests.log.contract_values import *  # noqa: F403
