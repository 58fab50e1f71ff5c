"""The tables of TPC-H, made from a seed: sizes, keys and distributions as the specification has them, texts shorter.

`Data(scale, seed)` gives each table as Arrow, and rounds of refresh: orders and lineitems that come and go, rows of
other tables that change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

MONEY = pa.decimal128(15, 2)
FIRST_DAY, DAYS = np.datetime64("1992-01-01"), 2406
"""Orders are made from 1992-01-01 to 1998-08-02."""
TODAY = np.datetime64("1995-06-17")
SCHEMAS: Mapping[str, str] = {
    "region": "r_regionkey INT NOT NULL, r_name STRING",
    "nation": "n_nationkey INT NOT NULL, n_name STRING, n_regionkey INT",
    "supplier": "s_suppkey INT NOT NULL, s_name STRING, s_address STRING, s_nationkey INT, s_phone STRING, "
    "s_acctbal DECIMAL(15,2), s_comment STRING",
    "part": "p_partkey INT NOT NULL, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, "
    "p_container STRING, p_retailprice DECIMAL(15,2)",
    "partsupp": "ps_partkey INT NOT NULL, ps_suppkey INT NOT NULL, ps_availqty INT, ps_supplycost DECIMAL(15,2)",
    "customer": "c_custkey INT NOT NULL, c_name STRING, c_address STRING, c_nationkey INT, c_phone STRING, "
    "c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING",
    "orders": "o_orderkey BIGINT NOT NULL, o_custkey INT, o_orderstatus STRING, o_totalprice DECIMAL(15,2), "
    "o_orderdate DATE, o_orderpriority STRING, o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT NOT NULL, l_linenumber INT NOT NULL, l_partkey INT, l_suppkey INT, "
    "l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), "
    "l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, "
    "l_shipinstruct STRING, l_shipmode STRING",
}
KEYS: Mapping[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_NATIONS = (
    "ALGERIA 0,ARGENTINA 1,BRAZIL 1,CANADA 1,EGYPT 4,ETHIOPIA 0,FRANCE 3,GERMANY 3,INDIA 2,INDONESIA 2,IRAN 4,IRAQ 4,"
    "JAPAN 2,JORDAN 4,KENYA 0,MOROCCO 0,MOZAMBIQUE 0,PERU 1,CHINA 2,ROMANIA 3,SAUDI ARABIA 4,VIETNAM 2,RUSSIA 3,"
    "UNITED KINGDOM 3,UNITED STATES 1"
)
NATIONS = _NATIONS.split(",")
"""Each with its region."""
_COLORS = (
    "almond antique aquamarine azure beige bisque black blue blush brown burlywood chartreuse chocolate coral cornsilk "
    "cream cyan dark deep dim dodger drab firebrick forest frosted gainsboro ghost goldenrod green grey honeydew hot "
    "indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint misty "
    "moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal "
    "saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat"
)
COLORS = _COLORS.split()
TYPES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINERS = (("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
WORDS = ("quick", "final", "bold", "even", "silent", "ideas", "accounts", "deposits", "foxes", "packages", "sleep")


@dataclass(frozen=True)
class Refresh:
    """One round: rows that are added or replaced, and keys that go, by table."""

    rows: Mapping[str, pa.RecordBatch]
    gone: Mapping[str, Sequence[Mapping[str, int]]]


class Data:
    """Tables at a scale; 1 is 6,000,000 lineitems."""

    def __init__(self, scale: float, seed: int = 1) -> None:
        self._chance = np.random.default_rng(seed)
        self.suppliers = max(int(10_000 * scale), 10)
        self.parts = max(int(200_000 * scale), 100)
        self.customers = max(int(150_000 * scale), 30)
        self.orders = max(int(1_500_000 * scale), 300)
        self.next_order = self.orders + 1

    def tables(self) -> dict[str, pa.RecordBatch]:
        orders, lines = self._orders(np.arange(1, self.orders + 1))
        return {
            "region": pa.record_batch({"r_regionkey": np.arange(5, dtype=np.int32), "r_name": list(REGIONS)}),
            "nation": _nations(),
            "supplier": self._suppliers(np.arange(1, self.suppliers + 1)),
            "part": self._parts(np.arange(1, self.parts + 1)),
            "partsupp": self._partsupps(),
            "customer": self._customers(np.arange(1, self.customers + 1)),
            "orders": orders,
            "lineitem": lines,
        }

    def refresh(self, share: float) -> Refresh:
        """So many of the orders come with their lineitems, as many go; as large a share of the other tables changes."""
        count = max(int(self.orders * share), 1)
        numbers = np.arange(self.next_order, self.next_order + count)
        self.next_order += count
        orders, lines = self._orders(numbers)
        going = self._chance.choice(np.arange(1, self.next_order - count), count, replace=False)
        changed = {
            "supplier": self._suppliers(self._some(self.suppliers, share)),
            "part": self._parts(self._some(self.parts, share)),
            "customer": self._customers(self._some(self.customers, share)),
        }
        gone = {
            "orders": [{"o_orderkey": int(key)} for key in going],
            "lineitem": [
                {"l_orderkey": int(key), "l_linenumber": line} for key in going for line in range(1, lines_of(key) + 1)
            ],
        }
        return Refresh({"orders": orders, "lineitem": lines, **changed}, gone)

    def _some(self, count: int, share: float) -> np.ndarray:
        return np.unique(self._chance.integers(1, count + 1, max(int(count * share), 1)))

    def _pick(self, words: Sequence[str], count: int) -> np.ndarray:
        return np.array(words, dtype=object)[self._chance.integers(0, len(words), count)]

    def _money(self, low: int, high: int, count: int) -> pa.Array:
        return money(self._chance.integers(low, high + 1, count))

    def _text(self, count: int, special: str, share: float) -> np.ndarray:
        """A few words; now and then those that a query looks for."""
        texts = self._pick(WORDS, count) + " " + self._pick(WORDS, count)
        found = self._chance.random(count) < share
        texts[found] = self._pick(WORDS, int(found.sum())) + special + self._pick(WORDS, int(found.sum()))
        return np.asarray(texts)

    def _phones(self, nations: np.ndarray) -> list[str]:
        digits = self._chance.integers(100, 1000, (len(nations), 3))
        return [f"{nation + 10}-{a}-{b}-{c}" for nation, (a, b, c) in zip(nations, digits, strict=True)]

    def _suppliers(self, keys: np.ndarray) -> pa.RecordBatch:
        nations = self._chance.integers(0, 25, len(keys)).astype(np.int32)
        return pa.record_batch(
            {
                "s_suppkey": keys.astype(np.int32),
                "s_name": [f"Supplier#{key:09d}" for key in keys],
                "s_address": self._pick(WORDS, len(keys)),
                "s_nationkey": nations,
                "s_phone": self._phones(nations),
                "s_acctbal": self._money(-99_999, 999_999, len(keys)),
                "s_comment": self._text(len(keys), " Customer some Complaints ", 0.002),
            }
        )

    def _parts(self, keys: np.ndarray) -> pa.RecordBatch:
        count = len(keys)
        makers = self._chance.integers(1, 6, count)
        brands = makers * 10 + self._chance.integers(1, 6, count)
        kinds = self._pick(TYPES[0], count) + " " + self._pick(TYPES[1], count) + " " + self._pick(TYPES[2], count)
        return pa.record_batch(
            {
                "p_partkey": keys.astype(np.int32),
                "p_name": self._pick(COLORS, count) + " " + self._pick(COLORS, count) + " " + self._pick(COLORS, count),
                "p_mfgr": [f"Manufacturer#{maker}" for maker in makers],
                "p_brand": [f"Brand#{brand}" for brand in brands],
                "p_type": kinds,
                "p_size": self._chance.integers(1, 51, count).astype(np.int32),
                "p_container": self._pick(CONTAINERS[0], count) + " " + self._pick(CONTAINERS[1], count),
                "p_retailprice": price_of(keys),
            }
        )

    def _partsupps(self) -> pa.RecordBatch:
        parts = np.repeat(np.arange(1, self.parts + 1), 4)
        return pa.record_batch(
            {
                "ps_partkey": parts.astype(np.int32),
                "ps_suppkey": self._supplier_of(parts, np.tile(np.arange(4), self.parts)).astype(np.int32),
                "ps_availqty": self._chance.integers(1, 10_000, len(parts)).astype(np.int32),
                "ps_supplycost": self._money(100, 100_000, len(parts)),
            }
        )

    def _supplier_of(self, part: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Each part has four suppliers, all of them different."""
        step = max(self.suppliers // 4, 1)
        return np.asarray((part + which * step) % self.suppliers + 1)

    def _customers(self, keys: np.ndarray) -> pa.RecordBatch:
        nations = self._chance.integers(0, 25, len(keys)).astype(np.int32)
        return pa.record_batch(
            {
                "c_custkey": keys.astype(np.int32),
                "c_name": [f"Customer#{key:09d}" for key in keys],
                "c_address": self._pick(WORDS, len(keys)),
                "c_nationkey": nations,
                "c_phone": self._phones(nations),
                "c_acctbal": self._money(-99_999, 999_999, len(keys)),
                "c_mktsegment": self._pick(SEGMENTS, len(keys)),
                "c_comment": self._pick(WORDS, len(keys)),
            }
        )

    def _orders(self, keys: np.ndarray) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Orders with their lineitems. A third of the customers never order."""
        count = len(keys)
        customers = self._chance.integers(0, self.customers * 2 // 3, count) * 3 // 2 + 1
        dates = FIRST_DAY + self._chance.integers(0, DAYS - 151, count).astype("timedelta64[D]")
        counts = np.array([lines_of(key) for key in keys])
        lines, shipped = self._lines(np.repeat(keys, counts), np.repeat(dates, counts), counts)
        ends = np.cumsum(counts)
        all_shipped = np.logical_and.reduceat(shipped, ends - counts)
        some_shipped = np.logical_or.reduceat(shipped, ends - counts)
        orders = pa.record_batch(
            {
                "o_orderkey": keys.astype(np.int64),
                "o_custkey": customers.astype(np.int32),
                "o_orderstatus": np.where(all_shipped, "F", np.where(some_shipped, "P", "O")).astype(object),
                "o_totalprice": self._money(100_000, 40_000_000, count),
                "o_orderdate": pa.array(dates.astype("datetime64[D]")),
                "o_orderpriority": self._pick(PRIORITIES, count),
                "o_shippriority": np.zeros(count, dtype=np.int32),
                "o_comment": self._text(count, " special packages requests ", 0.01),
            }
        )
        return orders, lines

    def _lines(self, orders: np.ndarray, dates: np.ndarray, counts: np.ndarray) -> tuple[pa.RecordBatch, np.ndarray]:
        count = len(orders)
        parts = self._chance.integers(1, self.parts + 1, count)
        quantity = self._chance.integers(1, 51, count)
        shipped = dates + self._chance.integers(1, 122, count).astype("timedelta64[D]")
        received = shipped + self._chance.integers(1, 31, count).astype("timedelta64[D]")
        returned = np.where(received <= TODAY, np.where(self._chance.random(count) < 0.5, "R", "A"), "N")
        prices = cents_of(parts) * quantity
        columns = {
            "l_orderkey": orders.astype(np.int64),
            "l_linenumber": (np.concatenate([np.arange(1, n + 1) for n in counts])).astype(np.int32),
            "l_partkey": parts.astype(np.int32),
            "l_suppkey": self._supplier_of(parts, self._chance.integers(0, 4, count)).astype(np.int32),
            "l_quantity": money(quantity * 100),
            "l_extendedprice": money(prices),
            "l_discount": self._money(0, 10, count),
            "l_tax": self._money(0, 8, count),
            "l_returnflag": returned.astype(object),
            "l_linestatus": np.where(shipped > TODAY, "O", "F").astype(object),
            "l_shipdate": pa.array(shipped.astype("datetime64[D]")),
            "l_commitdate": pa.array(
                (dates + self._chance.integers(30, 91, count).astype("timedelta64[D]")).astype("datetime64[D]")
            ),
            "l_receiptdate": pa.array(received.astype("datetime64[D]")),
            "l_shipinstruct": self._pick(INSTRUCTIONS, count),
            "l_shipmode": self._pick(MODES, count),
        }
        return pa.record_batch(columns), shipped <= TODAY


def lines_of(order: int) -> int:
    """How many lineitems an order has: 1 to 7, a function of its key, so that they can be deleted without looking."""
    return int(order) * 2_654_435_761 % 4_294_967_296 % 7 + 1


def cents_of(parts: np.ndarray) -> np.ndarray:
    return np.asarray(90_000 + parts // 10 % 20_001 + 100 * (parts % 1000))


def price_of(parts: np.ndarray) -> pa.Array:
    return money(cents_of(parts))


def money(cents: np.ndarray) -> pa.Array:
    """Whole cents as DECIMAL(15,2), by way of their bytes: a cast would be ten times slower."""
    wide = np.empty((len(cents), 2), dtype=np.int64)
    wide[:, 0] = cents
    wide[:, 1] = np.asarray(cents, dtype=np.int64) >> 63
    return pa.Array.from_buffers(MONEY, len(cents), [None, pa.py_buffer(wide.tobytes())])


def _nations() -> pa.RecordBatch:
    names, regions = zip(*(nation.rsplit(" ", 1) for nation in NATIONS), strict=True)
    return pa.record_batch(
        {
            "n_nationkey": np.arange(25, dtype=np.int32),
            "n_name": list(names),
            "n_regionkey": np.array(regions).astype(np.int32),
        }
    )
