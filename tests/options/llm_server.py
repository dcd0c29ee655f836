"""An OpenAI-compatible endpoint on loopback that does what a test tells it to."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any


@dataclasses.dataclass
class Request:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def prompt(self) -> str:
        return self.body["messages"][0]["content"]


@dataclasses.dataclass
class Response:
    """What is sent back; a `length` other than the body's leaves it truncated."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    length: int | None = None
    delay: float = 0.0
    pause: float = 0.0


def completion(text: Any) -> Response:
    """A chat completion with this text, which may be any JSON value."""
    return Response(body=json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode())


def answer(text: str) -> Response:
    """A completion of the form that is asked for."""
    return completion(json.dumps({"answer": text}))


class Server:
    """What was asked so far, and how many requests were under way at most."""

    def __init__(self, respond: Callable[[Request], Response]):
        self.respond = respond
        self.requests: list[Request] = []
        self.under_way = self.most_under_way = 0
        self.url = ""


@contextlib.contextmanager
def serve(respond: Callable[[Request], Response]) -> Iterator[Server]:
    """Runs a server in threads of this process; `server.url` is its address."""
    server, lock = Server(respond), threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = Request(self.path, dict(self.headers.items()), body)
            with lock:
                server.requests.append(request)
                server.under_way += 1
                server.most_under_way = max(server.most_under_way, server.under_way)
            response = server.respond(request)
            time.sleep(response.delay)
            with lock:
                server.under_way -= 1
            with contextlib.suppress(ConnectionError):
                self.send_response(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.send_header(
                    "Content-Length", str(len(response.body) if response.length is None else response.length)
                )
                self.end_headers()
                for byte in response.body if response.pause else ():
                    self.wfile.write(bytes([byte]))
                    time.sleep(response.pause)
                self.wfile.write(b"" if response.pause else response.body)
            self.close_connection = True

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        server.url = f"http://127.0.0.1:{httpd.server_address[1]}/v1"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            httpd.shutdown()
            thread.join()
