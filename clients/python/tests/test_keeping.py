"""The token appears in no log, error or repr, and goes over plain HTTP to localhost only."""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
import socket
import traceback

import pytest

from conftest import STATE, Flow
from countersign import (
    AsyncClient,
    Client,
    CountersignError,
    Invalid,
    NotFound,
    Problem,
    Retries,
    StillHeld,
    Unreachable,
)
from countersign._secret import Secret
from countersign.langgraph import NotConfirmed
from countersign.tools import CallRefused

TOKEN = "cs_this-is-the-token"


def test_no_text_of_a_client_has_its_token() -> None:
    with Client("https://gate.example", TOKEN) as client:
        for text in (
            repr(client),
            str(client),
            repr(client._settings),
            repr(client._settings.token),
            repr(client._http),
        ):
            assert TOKEN not in text
        assert repr(client) == "Client('https://gate.example')"
        assert TOKEN not in repr(client._http.headers)
    assert f"{Secret(TOKEN)}" == "Secret(…)"


def test_a_client_is_not_pickled_into_a_checkpoint() -> None:
    with Client("https://gate.example", TOKEN) as client:
        for travel in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError):
                travel(client._settings)
            with pytest.raises(TypeError):
                travel(client)


def test_no_error_and_no_log_has_the_token(flow: Flow, caplog: pytest.LogCaptureFixture) -> None:
    token = flow.tokens["writer"]
    caplog.set_level(logging.DEBUG)
    # A known token without the right, an unknown token, and no server.
    refused: list[tuple[str, str]] = [
        (flow.gateway.url, token),
        (flow.gateway.url, token[:-4] + "AAAA"),
        ("http://127.0.0.1:1", token),
    ]
    for url, given in refused:
        with Client(url, given, retries=None) as client, pytest.raises(CountersignError) as no:
            client.create_thread("payments", {}, thread="x")
        told = "".join(traceback.format_exception(no.value)) + repr(no.value.__dict__)
        assert given not in told
    assert token not in caplog.text
    assert "127.0.0.1" in caplog.text


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(("url", "token"), [("http://gate.example", TOKEN), ("https://gate.example", f"{TOKEN} ")])
def test_no_variable_in_a_report_of_an_error_has_the_token(kind: type[Client], url: str, token: str) -> None:
    """As reporters of errors go through the frames of a client that could not be made."""
    with pytest.raises(Invalid) as no:
        kind(url, token)
    inner = no.value.__traceback__.tb_next if no.value.__traceback__ else None
    assert inner is not None
    shown = "".join(
        f"{name} = {value!r}" for frame, _ in traceback.walk_tb(inner) for name, value in frame.f_locals.items()
    )
    assert "url = " in shown
    assert TOKEN not in shown


@pytest.mark.parametrize(
    "text", ["", "cs_a b", "cs_a\r\nX: y", "cs_ü", "a" * 513, None, b"cs_a", 7], ids=lambda it: repr(it)[:12]
)
def test_what_is_no_token_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(Invalid) as no:
        Client("https://gate.example", text)
    assert not text or str(text) not in str(no.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://gate.example",
        "http://10.0.0.7:8480",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "http://2130706433",
        "http://0.0.0.0",
        "http://[::ffff:10.0.0.7]",
        "https://user:secret@gate.example",
        "https://gate.example/path",
        "https://gate.example?x=1",
        "https://gate.example#x",
        "ftp://gate.example",
        "gate.example",
        "https://",
        "https://gate.example:port",
        "",
    ],
)
def test_an_address_that_would_show_the_token_or_is_none_is_refused(url: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(Invalid) as no:
            kind(url, TOKEN)
        assert "secret" not in str(no.value)


def test_the_message_about_an_address_or_a_token_has_the_next_step() -> None:
    with pytest.raises(Invalid, match="such as http://localhost:8480, without /aap/v1"):
        Client("http://localhost:8480/aap/v1", TOKEN)
    with pytest.raises(Invalid, match=r"is empty: is the variable set\?"):
        Client("http://localhost:8480", "")


@pytest.mark.parametrize(
    "url", ["http://localhost:8480", "http://127.0.0.1:8480", "http://127.9.9.9", "http://[::1]:8480"]
)
def test_plain_http_reaches_this_machine(url: str) -> None:
    with Client(url, TOKEN) as client:
        assert client.url == url


def test_plain_http_elsewhere_has_to_be_said() -> None:
    with Client("http://gate.internal", TOKEN, allow_plain_http=True) as client:
        assert client.url == "http://gate.internal"


def test_no_proxy_of_the_environment_is_shown_the_token(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{listening.getsockname()[1]}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with Client(flow.gateway.url, flow.tokens["host"]) as client:
            assert client.thread(flow.thread().thread).status == "open"
        listening.settimeout(0.01)
        with pytest.raises(TimeoutError):
            listening.accept()


def test_a_redirect_is_not_followed_with_the_token(flow: Flow) -> None:
    with Client(flow.gateway.url, flow.tokens["host"]) as client:
        assert client._http.follow_redirects is False


@pytest.mark.parametrize("thread", ["", "../x", "..", "a/b", "a?b", "a%2fb", "-a", "a" * 129, "ü", "a\n", None, 7])
def test_what_is_no_name_goes_into_no_path(flow: Flow, thread: str) -> None:
    with pytest.raises(Invalid):
        flow.host.thread(thread)
    with pytest.raises(Invalid):
        flow.writer.confirm(thread)


@pytest.mark.parametrize(
    "digest", ["", "sha256:", "sha256:" + "A" * 64, "md5:" + "a" * 64, "sha256:" + "a" * 64 + "/x"]
)
def test_what_is_no_digest_goes_into_no_path(flow: Flow, digest: str) -> None:
    with pytest.raises(Invalid):
        flow.planner.decision(digest)


@pytest.mark.parametrize("key", ["", "a b", "a\r\nX: y", "ü", "a" * 256])
def test_what_is_no_key_goes_into_no_header(flow: Flow, key: str) -> None:
    with pytest.raises(Invalid):
        flow.host.create_thread("payments", STATE, idempotency_key=key)


def test_why_nobody_was_reached_is_told(flow: Flow) -> None:
    with (
        Client("https://127.0.0.1:" + flow.gateway.url.rpartition(":")[2], TOKEN, retries=Retries(tries=1)) as client,
        pytest.raises(Unreachable) as no,
    ):
        client.thread("order-1")
    assert "ssl" in repr(no.value.__cause__).lower()
    assert "no connection to https://127.0.0.1:" in str(no.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x", "\ud800", object()])
def test_what_json_cannot_say_is_not_sent(flow: Flow, value: object) -> None:
    with pytest.raises(Invalid):
        flow.host.create_thread("payments", {"raw_text": value}, thread="never")


def test_a_number_that_would_be_another_one_is_refused_by_the_gateway(flow: Flow) -> None:
    with pytest.raises(Problem) as no:
        flow.host.create_thread("payments", {"n": 2**63 + 1}, thread="never")
    assert (no.value.code, no.value.errors[0].pointer) == ("number_not_exact", "/state/n")


def test_both_clients_have_the_same_calls() -> None:
    def calls(kind: type) -> dict[str, inspect.Signature]:
        public = {name: getattr(kind, name) for name in vars(kind) if not name.startswith("_")}
        return {
            name: inspect.signature(it)
            for name, it in public.items()
            if callable(it) and name not in ("close", "aclose")
        }

    theirs = {name: it.replace(return_annotation="") for name, it in calls(AsyncClient).items()}
    assert {name: it.replace(return_annotation="") for name, it in calls(Client).items()} == theirs
    assert len(theirs) == 67
    assert all(inspect.getdoc(getattr(Client, name)) for name in calls(Client))


REFUSED = CallRefused("denied", "refund", note="not this week", request="r-1")


def test_an_error_arrives_from_another_process_as_it_was(flow: Flow) -> None:
    """Pools of processes and task queues pickle what is raised, and one that cannot be read back breaks them."""
    with pytest.raises(NotFound) as missing:
        flow.host.thread("no-such-thread")
    for error in (missing.value, Invalid("token", "is none"), StillHeld("sha256:0", 3), NotConfirmed("job-1"), REFUSED):
        found = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
        assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))
