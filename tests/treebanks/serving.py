"""A web server of the test's own, which fails in the ways that servers and networks do."""

from __future__ import annotations

import http.server
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

from tests import builders


@dataclass
class Server:
    """Serves ``files`` by path, in whatever way the path is among the others."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)  # the connection closes half-way
    slow: set[str] = field(default_factory=set)  # what never ends
    endless: set[str] = field(default_factory=set)  # the file again and again, of no stated length
    encoded: set[str] = field(default_factory=set)  # said to be compressed by gzip
    moved: dict[str, str] = field(default_factory=dict)  # redirected to another path
    asked: list[str] = field(default_factory=list)
    halfway: Event = field(default_factory=Event)  # a slow one has sent what it ever will
    over: Event = field(default_factory=Event)


@contextmanager
def serving() -> Iterator[Server]:
    """A server that runs as long as the context does."""
    state = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            if self.path in state.moved:
                self.send_response(302)
                self.send_header("Location", state.moved[self.path])
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if (data := state.files.get(self.path)) is None:
                self.send_error(404)
                return
            self.send_response(200)
            if self.path in state.encoded:
                self.send_header("Content-Encoding", "gzip")
            if self.path not in state.endless:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.path in state.cut | state.slow:
                self.wfile.write(data[: len(data) // 2])
                if self.path in state.slow:
                    self.wfile.flush()
                    state.halfway.set()
                    state.over.wait()
                return
            try:
                self.wfile.write(data)
                while self.path in state.endless and not state.over.is_set():
                    self.wfile.write(data)
            except OSError:  # whoever asked has gone
                return

    with builders.serving(Handler) as port:
        state.url = f"http://127.0.0.1:{port}"
        try:
            yield state
        finally:
            state.over.set()
