"""Replies of a service on disk, so that no question is paid for twice. Knows neither service nor question.

One JSON file a reply, named by a hash of the question. It is there whole or not at all; several processes may share a
cache.
"""

from __future__ import annotations

import collections
import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from etils import epath

from brb_jax.results import atomic


class CacheError(ValueError):
    """A file of the cache holds something else than a reply."""


class ReplyCache:
    """Safe to use from many threads; equal questions at the same time are asked once."""

    def __init__(self, directory: epath.PathLike):
        """
        Args:
            directory: Created when the first reply is kept.
        """
        self._directory = epath.Path(directory).expanduser()
        self._asking: collections.defaultdict[str, threading.Lock] = collections.defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def get(self, question: Mapping[str, Any], ask: Callable[[], str]) -> str:
        """The reply to a question, from disk if it is there.

        Args:
            question: All that the reply depends on; strict JSON values.
            ask: Gets the reply. What it raises is passed on, and nothing is kept.

        Raises:
            CacheError: The reply's file is damaged.
        """
        key = hashlib.sha256(json.dumps(question, sort_keys=True, allow_nan=False).encode()).hexdigest()
        path = self._directory / key[:2] / f"{key[2:]}.json"
        with self._guard:
            asking = self._asking[key]
        with asking:
            if path.exists():
                return _read(path)
            reply = ask()
            path.parent.mkdir(parents=True, exist_ok=True)
            # ASCII, so that a reply with a lone surrogate can be kept like any other.
            atomic.write_text(path, json.dumps({"reply": reply}) + "\n")
            return reply


def _read(path: epath.Path) -> str:
    try:
        reply = json.loads(path.read_text())["reply"]
    except (ValueError, TypeError, KeyError, RecursionError):
        reply = None
    if not isinstance(reply, str):
        raise CacheError(f"{path} holds no reply; delete it to ask again")
    return reply
