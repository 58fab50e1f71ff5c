"""The embedded log keeps the contract, and that of one order."""

from tests.log.contract import *  # noqa: F403
from tests.log.contract_appends import *  # noqa: F403
from tests.log.contract_marks import *  # noqa: F403
from tests.log.contract_one_order import *  # noqa: F403
from tests.log.contract_values import *  # noqa: F403
