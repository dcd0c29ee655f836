"""No waiting between tries, no proxy between this process and itself."""

import pytest


@pytest.fixture(autouse=True)
def quick_and_direct(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("brb_jax.integrations.llm.FIRST_WAIT", 0.001)
