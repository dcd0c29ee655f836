"""An LLM behind an OpenAI-compatible endpoint: a prompt goes out, the text of the reply comes back.

What comes back is data: it is bounded in size, parsed as JSON, and never followed (no redirect), opened or run. The key
is sent in one header to one address and stands in no message, cache or reply.
"""

from __future__ import annotations

import datetime
import email.utils
import json
import math
import threading
import time
from types import TracebackType
from typing import Any, Self

import httpx2
import tenacity

from brb_jax.data import strict_json
from brb_jax.integrations.reply_cache import ReplyCache

KEY_VARIABLE = "OPENAI_API_KEY"
TRIES = 5
FIRST_WAIT = 1.0  # Seconds; doubled by every try.
LONGEST_WAIT = 120.0  # Seconds; who asks for more is not waited for.
FAILURES_IN_A_ROW = 5
MAX_BYTES = 1 << 20
_SHORTEST_SECRET = 8  # Local servers take any key; a short one may stand in an honest reply.


class EndpointError(Exception):
    """The endpoint is of no use to any question: a wrong address, model or key, or it is down."""


class ReplyError(ValueError):
    """This prompt got no reply that can be used."""


class _AgainError(Exception):
    """Worth another try, after `wait` seconds where the endpoint says so."""

    def __init__(self, problem: str, wait: float | None = None):
        super().__init__(problem)
        self.wait = wait


class Endpoint:
    """Safe to use from many threads. A context manager, which closes its connections."""

    def __init__(self, url: str, model: str, key: str, timeout: float, cache: ReplyCache):
        """
        Args:
            url: As `https://host/v1`, without `/chat/completions`.
            model: The name the endpoint knows it by.
            key: Empty for an endpoint that wants none.
            timeout: Seconds that one request may take, all in all.
            cache: Where replies are kept and looked up first.

        Raises:
            EndpointError: The address or the key cannot be used.
        """
        self._url, self._model, self._timeout, self._cache = _checked_url(url), model, timeout, cache
        self._key = _checked_key(key)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        self._client = httpx2.Client(headers=headers, timeout=timeout, follow_redirects=False)
        self._failures = 0
        self._given_up = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def ask(self, prompt: str) -> str:
        """The reply to a prompt, as the first choice's text.

        Answered from the cache where it was asked before. Else tried `TRIES` times at most, with waits that double or
        that the endpoint names.

        Raises:
            ReplyError: No reply to this prompt.
            EndpointError: No reply to any; also after `FAILURES_IN_A_ROW` prompts without one.
        """
        body = {"model": self._model, "messages": [{"role": "user", "content": prompt}]}
        try:
            return self._cache.get({"endpoint": self._url, **body}, lambda: self._ask_patiently(body))
        except EndpointError:
            self._given_up.set()  # So that no other thread goes on waiting.
            raise

    def _ask_patiently(self, body: dict[str, Any]) -> str:
        try:
            for attempt in tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(_AgainError),
                stop=tenacity.stop_any(
                    tenacity.stop_after_attempt(TRIES), tenacity.stop_when_event_set(self._given_up)
                ),
                wait=_wait,
                sleep=tenacity.sleep_using_event(self._given_up),
                reraise=True,
            ):
                with attempt:
                    reply = self._ask_once(json.dumps(body).encode())
        except _AgainError as error:
            self._count(failed=True)
            if self._failures >= FAILURES_IN_A_ROW:
                raise EndpointError(f"{self._url} failed {self._failures} times in a row; the last: {error}") from None
            raise ReplyError(f"{TRIES} tries failed; the last: {error}") from None
        self._count(failed=False)
        return reply

    def _count(self, failed: bool) -> None:
        with self._lock:
            self._failures = self._failures + 1 if failed else 0

    def _ask_once(self, body: bytes) -> str:
        """One request.

        Raises:
            _AgainError, ReplyError, EndpointError: By what another try, or another prompt, could change.
        """
        headers = {"Content-Type": "application/json"}
        try:
            with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                content = _read(response, time.monotonic() + self._timeout)
        except httpx2.TimeoutException:
            raise _AgainError(f"no whole reply within {self._timeout:g} s") from None
        except httpx2.ConnectError as error:
            raise _AgainError(f"no connection to {self._url} ({self._told(str(error))})") from None
        except httpx2.HTTPError as error:
            raise _AgainError(f"{type(error).__name__}: {self._told(str(error))}") from None
        self._check_status(response, content)
        reply = _first_choice(content)
        if self._key_in(reply):
            raise ReplyError("the reply repeats the key")
        return reply

    def _check_status(self, response: httpx2.Response, content: bytes) -> None:
        status = response.status_code
        says = self._told(f"{status} {response.reason_phrase}: {content.decode('utf-8', 'replace')}")
        if 300 <= status < 400:
            raise EndpointError(
                f"{self._url} answers with a redirect ({status}), which is not followed; name its target"
            )
        if status in (401, 403):
            raise EndpointError(f"{self._url} refuses the key in {KEY_VARIABLE} ({says})")
        if status in (404, 405):
            raise EndpointError(f"{self._url} has no such address, or not the model {self._model!r} ({says})")
        if status in (408, 409, 425, 429) or status >= 500:
            wait = _retry_after(response.headers.get("Retry-After"))
            if wait is not None and wait > LONGEST_WAIT:
                raise ReplyError(f"the endpoint asks to wait {wait:.0f} s ({says}); start again then")
            raise _AgainError(says, wait)
        if not 200 <= status < 300:
            raise ReplyError(f"the endpoint refuses the prompt ({says})")

    def _key_in(self, text: str) -> bool:
        return len(self._key) >= _SHORTEST_SECRET and self._key in text

    def _told(self, text: str, length: int = 200) -> str:
        """The beginning of what the endpoint said, on one line, without the key."""
        if self._key:
            text = text.replace(self._key, "[key]")
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return line if len(line) <= length else line[:length] + "…"


def _checked_url(url: str) -> str:
    """The address of chat completions.

    Raises:
        EndpointError: It is no plain http address.
    """
    try:
        parsed = httpx2.URL(url.strip())
    except httpx2.InvalidURL as error:
        raise EndpointError(f"--llm_endpoint={url}: {error}") from None
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise EndpointError(f"--llm_endpoint: an address only, as https://host/v1; a key belongs in {KEY_VARIABLE}")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise EndpointError(f"--llm_endpoint={url} is not an address such as https://host/v1")
    base = str(parsed).rstrip("/")
    return base if base.endswith("/chat/completions") else f"{base}/chat/completions"


def _checked_key(key: str) -> str:
    """
    Raises:
        EndpointError: It could not stand in a header. The message does not repeat it.
    """
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EndpointError(f"the key in {KEY_VARIABLE} holds white space or characters that no key has")
    return key


def _read(response: httpx2.Response, deadline: float) -> bytes:
    """The whole body, if it is not too large and comes in time."""
    content = b""
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > MAX_BYTES:
            raise _AgainError(f"the reply is larger than {MAX_BYTES >> 20} MiB")
        if time.monotonic() > deadline:
            raise httpx2.ReadTimeout("the whole reply took too long")
    return content


def _first_choice(content: bytes) -> str:
    try:
        document = strict_json.loads(content)
        text = document["choices"][0]["message"]["content"]
    except (ValueError, TypeError, KeyError, IndexError):
        text = None
    if not isinstance(text, str):
        raise _AgainError("the reply is no chat completion with a text")
    return text


def _retry_after(value: str | None) -> float | None:
    """Seconds to wait by a Retry-After header (RFC 9110, 10.2.3): a number, or a date."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (email.utils.parsedate_to_datetime(value) - datetime.datetime.now(datetime.UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, _AgainError) and error.wait is not None:
        return error.wait
    wait = tenacity.wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + tenacity.wait_random(0, FIRST_WAIT)
    return float(wait(state))
