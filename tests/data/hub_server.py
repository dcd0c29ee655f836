"""A small server with the addresses of the Hugging Face Hub that `huggingface_hub` asks for files."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
import urllib.parse


class Hub:
    """Repositories by `datasets/owner/name` or `models/owner/name`, each with its files.

    Attributes:
        url: For `HF_ENDPOINT`.
        downloaded: The files whose content was asked for, in order.
        requests: Method and path of every request.
    """

    def __init__(self, repositories: dict[str, dict[str, bytes]], gated: tuple[str, ...] = ()):
        self.repositories = repositories
        self.gated = gated
        self.broken = False
        self.downloaded: list[str] = []
        self.requests: list[str] = []
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub.answer(self, with_body=True)

            def do_HEAD(self):
                hub.answer(self, with_body=False)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def commit(self, repository: str) -> str:
        files = self.repositories[repository]
        return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()

    def answer(self, handler, with_body: bool):
        path = urllib.parse.unquote(urllib.parse.urlsplit(handler.path).path).strip("/")
        self.requests.append(f"{handler.command} /{path}")
        status, headers, body = self.response(path, with_body)
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if with_body:
            handler.wfile.write(body)

    def response(self, path: str, with_body: bool) -> tuple[int, dict[str, str], bytes]:
        if self.broken:
            return 503, {}, b"out of order"
        api = path.startswith("api/")
        parts = path.removeprefix("api/").split("/")
        if parts[0] not in ("datasets", "models"):
            parts.insert(0, "models")
        repository, rest = "/".join(parts[:3]), parts[3:]
        if repository not in self.repositories:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        files, commit = self.repositories[repository], self.commit(repository)
        revision = rest[1] if len(rest) > 1 else "main"
        if revision not in ("main", "v1", commit):
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        if api and rest[:1] == ["tree"]:
            entries = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in files.items()
            ]
            return 200, {"Content-Type": "application/json"}, json.dumps(entries).encode()
        if api:
            info = {"id": "/".join(parts[1:3]), "sha": commit, "siblings": [{"rfilename": name} for name in files]}
            return 200, {"Content-Type": "application/json"}, json.dumps(info).encode()
        name = "/".join(rest[2:])
        if repository in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b""
        if name not in files:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        if with_body:
            self.downloaded.append(name)
        etag = hashlib.sha1(files[name]).hexdigest()
        return 200, {"ETag": f'"{etag}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}, files[name]
