"""A bank: money goes from account to account, and none is made or lost.

What every set of answers of one moment must say: the balances are the credits less the debits, and the total is 0.
Some accounts only pay, some are only paid. Transfers stay as they are; orders are transfers that may be corrected, and
taken back.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from penstock.log import Log, Record
from penstock.views import ViewReader
from tests.engine.business import Business

COLUMNS = "payer BIGINT, payee BIGINT, amount DECIMAL(10,2)"
MOVED = "(SELECT payer, payee, amount FROM transfers UNION ALL SELECT payer, payee, amount FROM orders)"
DECLARATIONS = f"""
SET trigger_interval = '20 milliseconds';
SET shuffle_partitions = 2;
CREATE STREAM transfers (id BIGINT, {COLUMNS});
CREATE TABLE orders (id BIGINT PRIMARY KEY, {COLUMNS});
CREATE VIEW credits AS SELECT payee AS account, sum(amount) AS credit FROM {MOVED} GROUP BY payee;
CREATE VIEW debits AS SELECT payer AS account, sum(amount) AS debit FROM {MOVED} GROUP BY payer;
CREATE VIEW balance AS
  SELECT account, coalesce(credit, 0) - coalesce(debit, 0) AS balance
  FROM credits FULL JOIN debits USING (account);
CREATE VIEW total AS SELECT coalesce(sum(balance), 0) AS total FROM balance;
"""
VIEWS = ("credits", "debits", "balance", "total")
PAYERS, PAYEES = range(30), range(10, 40)
Answers = Mapping[str, list[dict[str, Any]]]


@dataclass
class Bank(Business):
    _transfers: int = 0
    _orders: list[int] = field(default_factory=list)

    declarations = DECLARATIONS

    def create_topics(self, log: Log) -> None:
        log.create_topic("transfers", f"id BIGINT, {COLUMNS}")
        log.create_topic("orders", f"id BIGINT, {COLUMNS}", key="id")

    def append(self, log: Log, frames: int = 1) -> None:
        for _ in range(frames):
            transfers = [self._transfer() for _ in range(self.random.randrange(1, 6))]
            log.append_all({"transfers": transfers, "orders": self._ordered()})

    def _ordered(self) -> list[dict[str, Any] | Record]:
        """A new one, and one of those before that is another now, or that leaves."""
        new = self._transfer()
        made: list[dict[str, Any] | Record] = [new]
        if self._orders and self.random.random() < 0.5:
            made.append(self._transfer() | {"id": self.random.choice(self._orders)})
        if self._orders and self.random.random() < 0.3:
            gone = self._orders.pop(self.random.randrange(len(self._orders)))
            made.append(Record({"id": gone}, deleted=True))
        self._orders.append(new["id"])
        return made

    def _transfer(self) -> dict[str, Any]:
        self._transfers += 1
        payer, payee = self.random.choice(PAYERS), self.random.choice(PAYEES)
        amount = Decimal(self.random.randrange(1, 100_000)) / 100
        return {"id": self._transfers, "payer": payer, "payee": payee, "amount": amount}


def check_balanced(answers: Answers) -> None:
    """All answers are of one moment, and no money was made or lost."""
    credits, debits = by_account(answers["credits"], "credit"), by_account(answers["debits"], "debit")
    balances = by_account(answers["balance"], "balance")
    assert balances == {each: credits[each] - debits[each] for each in {*credits, *debits}}
    assert sum(balances.values()) == 0
    assert answers["total"] == [{"total": Decimal(0)}]


def by_account(rows: list[dict[str, Any]], column: str) -> Counter[int]:
    found = Counter({row["account"]: row[column] for row in rows})
    assert len(found) == len(rows)
    return found


def stored(reader: ViewReader) -> tuple[int, Answers] | None:
    """The batch that the store has taken, and its views; None before the first, or where it moved on between them."""
    found = {view: reader.rows(view) for view in VIEWS}
    assert sum(row["balance"] for row in found["balance"]) == 0
    [batch, *others] = {answer.position.batch for answer in found.values()}
    return None if others or batch is None else (batch, {view: list(answer) for view, answer in found.items()})
