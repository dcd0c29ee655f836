"""The client against a real HTTP server: what is sent, what is tried again, what ends the work, and what is kept."""

import datetime
import email.utils
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from llm_server import Response, completion, serve

from brb_jax.integrations import llm
from brb_jax.integrations.llm import Endpoint, EndpointError, ReplyError
from brb_jax.integrations.reply_cache import CacheError, ReplyCache

KEY = "sk-secret-0123456789abcdef"


def endpoint(url, folder, key=KEY, timeout=5.0):
    return Endpoint(url, "tiny", key, timeout, ReplyCache(folder))


def kept(folder):
    return sorted(path.read_text() for path in folder.rglob("*") if path.is_file())


def in_turn(*responses):
    """Responds with these, one after the other; the last again and again."""
    left = list(responses)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


def test_what_is_sent(tmp_path):
    with serve(lambda request: completion(f"Re: {request.prompt}")) as server, endpoint(server.url, tmp_path) as llm_:
        assert llm_.ask("Grüße\n北京") == "Re: Grüße\n北京"
    [request] = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "tiny", "messages": [{"role": "user", "content": "Grüße\n北京"}]}


def test_without_a_key_none_is_sent(tmp_path):
    with serve(lambda request: completion("x")) as server, endpoint(f"{server.url}/", tmp_path, key=" \n") as llm_:
        llm_.ask("a")
    assert "Authorization" not in server.requests[0].headers


@pytest.mark.parametrize("text", ["x", "", "\0", "\ud83d", "../../etc/passwd", "</script>\u2028", "{}" * 100_000])
def test_a_reply_is_kept_and_asked_for_once(text, tmp_path):
    with serve(lambda request: completion(text)) as server:
        for _ in range(2):
            with endpoint(server.url, tmp_path) as llm_:
                assert llm_.ask("a") == llm_.ask("a") == text
        assert len(server.requests) == 1
        with endpoint(server.url, tmp_path) as llm_:
            llm_.ask("b")
        assert len(server.requests) == 2
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 2
    for path in files:
        assert path.relative_to(tmp_path).parts[0] == path.parent.name and len(path.parent.name) == 2
        assert len(path.stem) == 62 and set(path.stem) <= set("0123456789abcdef")
        assert json.loads(path.read_text()) == {"reply": text}


def test_other_models_and_endpoints_have_other_replies(tmp_path):
    cache = ReplyCache(tmp_path)
    with serve(lambda request: completion(request.body["model"])) as server:
        for model in ("one", "two", "one"):
            with Endpoint(server.url, model, "", 5.0, cache) as llm_:
                assert llm_.ask("a") == model
        assert len(server.requests) == 2


def test_a_kept_reply_is_read_when_there_is_no_server(tmp_path):
    with serve(lambda request: completion("x")) as server, endpoint(server.url, tmp_path) as llm_:
        llm_.ask("a")
    with endpoint(server.url, tmp_path, key="") as llm_:
        assert llm_.ask("a") == "x"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"reply": 3}', "null", "[" * 100_000])
def test_a_damaged_file_is_named(text, tmp_path):
    with serve(lambda request: completion("x")) as server, endpoint(server.url, tmp_path) as llm_:
        llm_.ask("a")
        [path] = tmp_path.rglob("*.json")
        path.write_text(text)
        with pytest.raises(CacheError, match=rf"{path} holds no reply; delete it to ask again"):
            llm_.ask("a")


AGAIN = {
    "rate limit": Response(429, b'{"error": "slow down"}'),
    "server error": Response(500, b"<html>Internal Server Error</html>"),
    "unavailable": Response(503),
    "truncated": Response(body=completion("x").body, length=10_000),
    "half a JSON": Response(body=completion("x").body[:-9]),
    "html": Response(body=b"<html><body>Hello</body></html>"),
    "empty": Response(),
    "no choices": Response(body=b'{"choices": []}'),
    "no text": completion(None),
    "a list of parts": completion([{"type": "text", "text": "x"}]),
    "an array": Response(body=b"[1, 2]"),
    "no UTF-8": Response(body=b"\xff\xfe"),
    "deep": Response(body=b"[" * 100_000),
    "huge": Response(body=completion("x" * (2 << 20)).body),
    "wrongly compressed": Response(body=b"x", headers={"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("name", AGAIN)
def test_what_may_pass_is_tried_again(name, tmp_path):
    with serve(in_turn(AGAIN[name], AGAIN[name], completion("x"))) as server, endpoint(server.url, tmp_path) as llm_:
        assert llm_.ask("a") == "x"
    assert len(server.requests) == 3 and len(kept(tmp_path)) == 1


@pytest.mark.parametrize("name", AGAIN)
def test_what_does_not_pass_is_said_and_not_kept(name, tmp_path):
    with (
        serve(in_turn(AGAIN[name])) as server,
        endpoint(server.url, tmp_path) as llm_,
        pytest.raises(ReplyError, match="5 tries failed; the last: ") as caught,
    ):
        llm_.ask("a")
    assert len(server.requests) == 5 and kept(tmp_path) == []
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_prompt_that_is_refused_is_not_sent_again(tmp_path):
    bad = Response(400, b'{"error": {"message": "context too long"}}', {"Content-Type": "application/json"})
    with serve(in_turn(bad, completion("x"))) as server, endpoint(server.url, tmp_path) as llm_:
        with pytest.raises(ReplyError, match=r"refuses the prompt \(400 Bad Request: .*context too long"):
            llm_.ask("a")
        assert llm_.ask("b") == "x"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "refuses the key in OPENAI_API_KEY .401 Unauthorized: no such key"),
        (403, "refuses the key"),
        (404, "no such address, or not the model 'tiny' .404"),
    ],
)
def test_what_no_prompt_can_change_ends_the_work(status, says, tmp_path):
    with (
        serve(in_turn(Response(status, b"no such key"))) as server,
        endpoint(server.url, tmp_path) as llm_,
        pytest.raises(EndpointError, match=says),
    ):
        llm_.ask("a")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status, tmp_path):
    with serve(lambda request: completion("x")) as elsewhere:
        there = Response(status, headers={"Location": f"{elsewhere.url}/chat/completions"})
        with (
            serve(in_turn(there)) as server,
            endpoint(server.url, tmp_path) as llm_,
            pytest.raises(EndpointError, match=rf"redirect \({status}\), which is not followed"),
        ):
            llm_.ask("a")
    assert elsewhere.requests == [] and len(server.requests) == 1


def test_no_connection(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        says = r"5 tries failed; the last: no connection to http.*refused"
        with endpoint(url, tmp_path) as llm_, pytest.raises(ReplyError, match=says):
            llm_.ask("a")


def test_five_failures_in_a_row_end_the_work(tmp_path):
    with serve(in_turn(Response(500, b"down"))) as server, endpoint(server.url, tmp_path) as llm_:
        for prompt in "abcd":
            with pytest.raises(ReplyError):
                llm_.ask(prompt)
        with pytest.raises(EndpointError, match="failed 5 times in a row; the last: 500 Internal Server Error: down"):
            llm_.ask("e")


def test_a_success_between_failures_begins_the_count_anew(tmp_path):
    with (
        serve(lambda request: completion("x") if "x" in request.prompt else Response(500)) as server,
        endpoint(server.url, tmp_path) as llm_,
    ):
        for prompt in ("a", "b", "c", "d", "x", "e", "f", "g", "h"):
            if prompt != "x":
                with pytest.raises(ReplyError):
                    llm_.ask(prompt)
            else:
                llm_.ask(prompt)


@pytest.mark.parametrize(
    "slow",
    [Response(body=completion("x").body, delay=1.0), Response(body=completion("x").body, pause=0.5)],
    ids=["silent", "byte by byte"],
)
def test_a_slow_reply(slow, tmp_path, monkeypatch):
    monkeypatch.setattr(llm, "TRIES", 2)
    with serve(in_turn(slow)) as server, endpoint(server.url, tmp_path, timeout=0.3) as llm_:
        started = time.monotonic()
        with pytest.raises(ReplyError, match=r"2 tries failed; the last: no whole reply within 0.3 s"):
            llm_.ask("a")
        assert time.monotonic() - started < 30  # the body by itself takes longer
    assert len(server.requests) == 2


def http_date(seconds):
    return email.utils.format_datetime(datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds), True)


@pytest.mark.parametrize(("value", "least"), [("0.4", 0.4), (http_date, 0.5)], ids=["seconds", "date"])
def test_retry_after_is_heeded(value, least, tmp_path):
    if callable(value):
        value = value(2)
    limited = Response(429, headers={"Retry-After": value})
    with serve(in_turn(limited, completion("x"))) as server, endpoint(server.url, tmp_path) as llm_:
        started = time.monotonic()
        assert llm_.ask("a") == "x"
        assert time.monotonic() - started >= least
    assert len(server.requests) == 2


@pytest.mark.parametrize("value", ["soon", "", "-5", "nan", "inf", "Wed, 99 Nov 2020 99:00:00 GMT", "0"])
def test_a_retry_after_that_says_nothing(value, tmp_path):
    limited = Response(503, headers={"Retry-After": value})
    with serve(in_turn(limited, completion("x"))) as server, endpoint(server.url, tmp_path) as llm_:
        assert llm_.ask("a") == "x"


def test_who_asks_for_an_hour_is_not_waited_for(tmp_path):
    with (
        serve(in_turn(Response(429, headers={"Retry-After": "3600"}))) as server,
        endpoint(server.url, tmp_path) as llm_,
        pytest.raises(ReplyError, match=r"asks to wait 3600 s \(429 Too Many Requests.*start again then"),
    ):
        llm_.ask("a")
    assert len(server.requests) == 1


def test_who_waits_is_called_off_when_the_work_ends(tmp_path):
    def respond(request):
        return Response(401) if request.prompt == "b" else Response(429, headers={"Retry-After": "60"})

    with serve(respond) as server, endpoint(server.url, tmp_path) as llm_, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(llm_.ask, "a")
        while not server.requests:
            time.sleep(0.01)
        with pytest.raises(EndpointError):
            llm_.ask("b")
        assert isinstance(waiting.exception(timeout=5), ReplyError)


def test_equal_prompts_at_the_same_time_are_sent_once(tmp_path):
    slow = completion("x")
    slow.delay = 0.2
    with serve(in_turn(slow)) as server, endpoint(server.url, tmp_path) as llm_, ThreadPoolExecutor(8) as pool:
        assert set(pool.map(llm_.ask, ["a"] * 8)) == {"x"}
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500])
def test_a_server_that_repeats_the_key_does_not_get_it_into_messages_or_files(status, tmp_path, caplog, capfd):
    caplog.set_level(0)

    def echo(request):
        told = request.headers["Authorization"]
        body = completion(f"I saw {told}").body if status == 200 else f"{'x' * 150} {told} bad\n{told}".encode()
        return Response(status, body, {"X-Echo": "x"})

    with (
        serve(echo) as server,
        endpoint(server.url, tmp_path) as llm_,
        pytest.raises((ReplyError, EndpointError)) as caught,
    ):
        llm_.ask("a")
    assert KEY not in repr(caught.value) and "0123456789" not in str(caught.value)
    assert kept(tmp_path) == []
    assert KEY not in caplog.text and KEY not in "".join(capfd.readouterr())
    assert KEY not in repr(llm_)


@pytest.mark.parametrize("key", ["sk secret 1234", "sk-secret\n1234", "schlüssel-geheim", "sk\0secret"])
def test_a_key_that_cannot_be_sent_is_not_repeated(key, tmp_path):
    with pytest.raises(EndpointError) as caught:
        endpoint("http://127.0.0.1/v1", tmp_path, key=key)
    assert str(caught.value) == "the key in OPENAI_API_KEY holds white space or characters that no key has"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("127.0.0.1:8000/v1", "is not an address such as https://host/v1"),
        ("localhost", "is not an address such as"),
        ("ftp://host/v1", "is not an address such as"),
        ("file:///etc/passwd", "is not an address such as"),
        ("http://", "is not an address such as"),
        ("http://host:port/v1", "--llm_endpoint=http://host:port/v1: "),
        ("https://user:sk-1234@host/v1", "a key belongs in OPENAI_API_KEY"),
        ("https://host/v1?api-key=sk-1234", "a key belongs in OPENAI_API_KEY"),
    ],
)
def test_addresses_that_are_none(url, says, tmp_path):
    with pytest.raises(EndpointError, match=says) as caught:
        endpoint(url, tmp_path)
    assert "sk-1234" not in str(caught.value)


def test_an_address_may_name_the_whole_path(tmp_path):
    with (
        serve(lambda request: completion("x")) as server,
        endpoint(f"{server.url}/chat/completions", tmp_path) as llm_,
    ):
        assert llm_.ask("a") == "x"
    assert server.requests[0].path == "/v1/chat/completions"


def test_two_processes_may_write_the_same_reply(tmp_path, monkeypatch):
    """As if two had asked the same question at once: the later one replaces the earlier."""
    caches = [ReplyCache(tmp_path), ReplyCache(tmp_path)]
    meet = threading.Barrier(2)

    def ask():
        meet.wait()
        return "x"

    pids = iter([1, 2])
    monkeypatch.setattr("brb_jax.results.atomic.os.getpid", lambda: next(pids))
    with ThreadPoolExecutor(2) as pool:
        assert [f.result() for f in [pool.submit(cache.get, {"q": 1}, ask) for cache in caches]] == ["x", "x"]
    assert [json.loads(text) for text in kept(tmp_path)] == [{"reply": "x"}]
