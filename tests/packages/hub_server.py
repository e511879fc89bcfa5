"""A stand-in for the hub of Hugging Face: the part of its web interface that its library calls.

A file is asked for by HEAD, answered with the commit, a tag and the size, then by GET.
"""

from __future__ import annotations

import hashlib
import http.server
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests import builders


@dataclass
class Hub:
    """Repositories by ``OWNER/NAME`` and commit: files by path.

    Attributes:
        claims: sizes by path that are said in place of the true ones.
        asked: methods and paths of all requests.
    """

    url: str = ""
    repositories: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    claims: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def push(self, name: str, folder: Path) -> str:
        """Store a folder as a new commit; returns it."""
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        content = b"".join(path.encode() + data for path, data in files.items())
        commit = hashlib.sha1(content).hexdigest()
        self.repositories[name, commit] = files
        return commit


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub that runs as long as the context does."""
    hub = Hub()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            hub.asked.append(f"{self.command} {self.path}")
            match self.path.split("?")[0].strip("/").split("/"):
                case [owner, name, "resolve", commit, *file]:
                    self.resolve(f"{owner}/{name}", commit, "/".join(file))
                case _:
                    self.refuse("RepoNotFound")

        def resolve(self, name: str, commit: str, file: str) -> None:
            files = hub.repositories.get((name, commit))
            if files is None:
                self.refuse("RevisionNotFound")
            elif file not in files:
                self.refuse("EntryNotFound", commit)
            else:
                data = files[file]
                blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
                size = hub.claims.get(file, len(data))
                headers = {"X-Repo-Commit": commit, "ETag": f'"{blob}"'}
                self.answer(data, headers | {"Content-Length": str(size)})

        def answer(self, data: bytes, headers: dict[str, str]) -> None:
            self.send_response(200)
            self.headed({"Content-Length": str(len(data))} | headers)
            if self.command == "GET":
                self.wfile.write(data)

        def refuse(self, code: str, commit: str = "") -> None:
            self.send_response(404)
            headers = {"X-Error-Code": code, "Content-Length": "0"}
            self.headed(headers | ({"X-Repo-Commit": commit} if commit else {}))

        def headed(self, headers: dict[str, str]) -> None:
            for key, value in headers.items():
                self.send_header(key, value)
            self.end_headers()

    with builders.serving(Handler) as port:
        hub.url = f"http://127.0.0.1:{port}"
        yield hub
