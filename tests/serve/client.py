"""A client as plain as can be: requests and events over a real socket."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from itertools import islice
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

PATIENCE_SECONDS = 20


@dataclass(frozen=True)
class Got:
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def primary(self) -> str:
        """What an error says first; all have the three parts."""
        assert self.json["error"].keys() == {"primary", "detail", "hint"}
        return str(self.json["error"]["primary"])


@dataclass
class Client:
    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, *, headers: dict[str, str] | None = None, **query: Any) -> Got:
        asked = f"?{urlencode(query, doseq=True)}" if query else ""
        return self.send("GET", quote(path) + asked, headers=headers)

    def rows(self, view: str, **query: Any) -> Any:
        got = self.get(f"/views/{view}/rows", **query)
        assert got.status == 200, got.data
        return got.json["rows"]

    def append(self, topic: str, *records: Any, **more: Any) -> Got:
        body = json.dumps({"records": records, **more}).encode()
        return self.send("POST", f"/topics/{topic}", body, headers={"content-type": "application/json"})

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Got:
        request = urllib.request.Request(
            self.url + path, data=body, method=method, headers={**self.headers, **(headers or {})}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return _got(answer)
        except urllib.error.HTTPError as answer:
            with answer:
                return _got(answer)

    def follow(self, view: str, *, last: str | None = None, **query: str) -> "Following":
        return Following(self, f"/views/{view}/changes?{urlencode(query)}", last)


def _got(answer: Any) -> Got:
    return Got(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read())


@dataclass(frozen=True)
class Event:
    id: str
    kind: str
    data: Any


class Following:
    """Events as they come; use it in a `with`."""

    def __init__(self, client: Client, path: str, last: str | None) -> None:
        parts = urlsplit(client.url)
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE_SECONDS)
        headers = {**client.headers, **({} if last is None else {"last-event-id": last})}
        self._connection.request("GET", path, headers=headers)
        self.answer: HTTPResponse = self._connection.getresponse()

    def __enter__(self) -> "Following":
        return self

    def __exit__(self, *_: object) -> None:
        self.answer.close()
        self._connection.close()

    def events(self) -> Iterator[Event]:
        """Until the server ends them."""
        fields: dict[str, str] = {}
        while line := self.answer.readline():
            text = line.decode().rstrip("\n")
            if text.startswith(":"):
                continue
            if text:
                name, _, value = text.partition(": ")
                fields[name] = value
            elif fields:
                yield Event(fields["id"], fields["event"], json.loads(fields["data"]))
                fields = {}

    def take(self, count: int) -> list[Event]:
        return list(islice(self.events(), count))

    def news(self, count: int) -> list[Event]:
        """The next events that tell something."""
        return list(islice((event for event in self.events() if event.kind != "start"), count))

    def changes(self, count: int) -> list[tuple[int, Any]]:
        """The next changes, without what stands between them."""
        found = (event for event in self.events() if event.kind == "change")
        return [(event.data["change"], event.data["row"]) for event in islice(found, count)]
