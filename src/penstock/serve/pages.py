"""Pages: the dashboard, as files that the wheel brings. What they show, they ask for like anybody else.

They are given to everybody, also where tokens are needed: there is nothing in them, and the page asks for the token. It
may load from this server only, and run nothing but its own files.
"""

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from penstock.errors import ServeError

FOLDER = Path(__file__).parent / "dashboard"
PREFIX = "/dashboard/"
FIRST = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
}
HEADERS = {
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def is_page(path: str) -> bool:
    return path == "/" or path.startswith(PREFIX)


def page_routes() -> list[Route]:
    """The files are read once."""
    files = {each.name: each.read_bytes() for each in FOLDER.iterdir() if each.suffix in TYPES}

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", FIRST)
        if name not in files:
            raise ServeError(f'the dashboard has no file "{name[:60]}"', status=404)
        mark = f'"{hashlib.sha256(files[name]).hexdigest()[:16]}"'
        headers = {**HEADERS, "etag": mark}
        if request.headers.get("if-none-match") == mark:
            return Response(status_code=304, headers=headers)
        return Response(files[name], headers=headers, media_type=TYPES[Path(name).suffix])

    return [Route("/", page, methods=["GET"]), Route(PREFIX + "{name}", page, methods=["GET"])]
