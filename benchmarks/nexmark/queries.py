"""The queries of Nexmark in Spark SQL, as Penstock keeps them; and the side table of q13."""

import re
from collections.abc import Sequence
from pathlib import Path

COLUMNS = {
    "person": "id BIGINT, name STRING, email STRING, credit_card STRING, city STRING, state STRING, at TIMESTAMP",
    "auction": """id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, at TIMESTAMP,
        expires TIMESTAMP, seller BIGINT, category BIGINT""",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, at TIMESTAMP",
}
STREAMS = {
    name: f"CREATE STREAM {name} ({columns}) WITH (event_time = 'at', watermark = '4 seconds');\n"
    for name, columns in COLUMNS.items()
}
QUERIES = {
    "q0": "SELECT auction, bidder, price, at FROM bid",
    "q1": "SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)) AS price, at FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": """SELECT category, avg(final) AS average FROM (
          SELECT max(b.price) AS final, a.category FROM auction a JOIN bid b ON a.id = b.auction
          WHERE b.at BETWEEN a.at AND a.expires GROUP BY a.id, a.category)
        GROUP BY category""",
    "q5": """SELECT auction, num, w.start, w.end FROM (
          SELECT *, max(num) OVER (PARTITION BY w) AS most FROM (
            SELECT auction, window AS w, count(*) AS num FROM bid
            GROUP BY auction, window(at, '10 seconds', '2 seconds')))
        WHERE num >= most""",
    "q6": """SELECT seller, avg(final) OVER (PARTITION BY seller ORDER BY at, id
            ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average FROM (
          SELECT max(b.price) AS final, a.id, a.seller, a.at FROM auction a JOIN bid b ON a.id = b.auction
          WHERE b.at BETWEEN a.at AND a.expires GROUP BY a.id, a.seller, a.at)""",
    "q7": """SELECT b.auction, b.price, b.bidder, b.at FROM (SELECT *, window(at, '10 seconds') AS w FROM bid) b
        JOIN (SELECT max(price) AS most, window AS w FROM bid GROUP BY window(at, '10 seconds')) m
        ON b.w = m.w AND b.price = m.most""",
    "q8": """SELECT p.id, p.name, p.w.start FROM (
          SELECT id, name, window AS w FROM person GROUP BY id, name, window(at, '10 seconds')) p
        JOIN (SELECT seller, window AS w FROM auction GROUP BY seller, window(at, '10 seconds')) a
        ON p.id = a.seller AND p.w = a.w""",
    "q9": """SELECT id, item_name, description, initial_bid, reserve, at, expires, seller, category,
          auction, bidder, price, bid_at FROM (
            SELECT a.*, b.auction, b.bidder, b.price, b.at AS bid_at,
              row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.at) AS place
            FROM auction a JOIN bid b ON a.id = b.auction WHERE b.at BETWEEN a.at AND a.expires)
        WHERE place <= 1""",
    "q10": """SELECT auction, bidder, price, at, url,
          date_format(at, 'yyyy-MM-dd') AS day, date_format(at, 'HH:mm') AS minute FROM bid""",
    "q11": """SELECT bidder, count(*) AS bids, session_window.start, session_window.end FROM bid
        GROUP BY bidder, session_window(at, '10 seconds')""",
    "q12": """SELECT bidder, count(*) AS bids, window.start, window.end FROM bid
        GROUP BY bidder, window(_appended_at, '10 seconds')""",
    "q13": """SELECT b.auction, b.bidder, b.price, b.at, s.value FROM bid b
        JOIN parquet.`{side}` s ON b.auction % 10000 = s.key""",
    "q14": """SELECT auction, bidder, 0.908 * price AS price,
          CASE WHEN hour(at) BETWEEN 8 AND 18 THEN 'dayTime' WHEN hour(at) <= 6 OR hour(at) >= 20 THEN 'nightTime'
            ELSE 'otherTime' END AS time_type,
          at, length(url) - length(replace(url, 'c', '')) AS c_count
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": """SELECT date_format(at, 'yyyy-MM-dd') AS day, count(*) AS total,
          count(*) FILTER (WHERE price < 10000) AS rank1,
          count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2,
          count(*) FILTER (WHERE price >= 1000000) AS rank3, count(DISTINCT bidder) AS bidders,
          count(DISTINCT bidder) FILTER (WHERE price < 10000) AS bidders1,
          count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS bidders2,
          count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS bidders3, count(DISTINCT auction) AS auctions,
          count(DISTINCT auction) FILTER (WHERE price < 10000) AS auctions1,
          count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS auctions2,
          count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS auctions3
        FROM bid GROUP BY date_format(at, 'yyyy-MM-dd')""",
    "q17": """SELECT auction, date_format(at, 'yyyy-MM-dd') AS day, count(*) AS total,
          count(*) FILTER (WHERE price < 10000) AS rank1,
          count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2,
          count(*) FILTER (WHERE price >= 1000000) AS rank3, min(price) AS low, max(price) AS high, avg(price) AS mean,
          sum(price) AS sum FROM bid GROUP BY auction, date_format(at, 'yyyy-MM-dd')""",
    "q18": """SELECT auction, bidder, price, channel, url, at FROM (
          SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY at DESC) AS place FROM bid)
        WHERE place <= 1""",
    "q19": """SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid)
        WHERE place <= 10""",
    "q20": """SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.at AS bid_at, a.item_name, a.description,
          a.initial_bid, a.reserve, a.at, a.expires, a.seller, a.category
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    "q21": """SELECT auction, bidder, price, channel,
          CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
            WHEN 'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
        FROM bid WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> ''
          OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
          split_part(url, '/', 6) AS dir3 FROM bid""",
}
QUERIES["q16"] = (
    QUERIES["q15"]
    .replace("GROUP BY", "GROUP BY channel,")
    .replace("SELECT date_format", "SELECT channel, max(date_format(at, 'HH:mm')) AS minute, date_format", 1)
)


READ = "read"
"""Reading alone: every column of every event."""
READS = {f"all_{kind}": f"SELECT * FROM {kind}" for kind in COLUMNS}


def pipeline_text(names: Sequence[str], side: Path, store: str = "none") -> str:
    """The streams that the queries read, and each query as a view."""
    asked = READS if names == [READ] else {name: QUERIES[name].format(side=side) for name in names}
    parts = ", partition_by = 'day, minute'" if store == "files" else ""
    views = [f"CREATE VIEW {name} WITH (store = '{store}'{parts}) AS {query};" for name, query in asked.items()]
    used = [text for stream, text in STREAMS.items() if any(re.search(rf"\b{stream}\b", view) for view in views)]
    return "\n".join([*used, *views])
