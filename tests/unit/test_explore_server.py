"""The explorer's server: the digits of the command and of Python, refusals, and a slow question beside a quick one."""

from __future__ import annotations

import io
import json
import os
import random
import re
import shlex
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the explorer needs its extra: pip install '.[explore]'")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status
from hockeystick.app.explore import answers
from hockeystick.app.explore.answers import VIEWS, answered
from hockeystick.app.explore.question import MOST_BYTES, BadQuestionError, choices, question
from hockeystick.app.explore.server import application, serve
from hockeystick.app.explore.workers import Workers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer releases of Starlette prefer another client, which older ones do not know
    from starlette.testclient import TestClient

PORT = 8321
HOST = f"127.0.0.1:{PORT}"
BY_RATE = {
    "noise_multiplier": 1.0,
    "sampling": "poisson",
    "rate": 0.01,
    "steps": 2000,
    "delta": 1e-5,
    "adjacency": "add-remove",
    "detail": "live",
}
BY_SIZE = {k: v for k, v in BY_RATE.items() if k != "rate"} | {"batch_size": 50, "examples": 5000}
FIXED_SIZE = BY_SIZE | {"sampling": "without-replacement"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(application(PORT, seconds=3600.0), base_url=f"http://{HOST}") as found:
        yield found


def asked(**fields: Any) -> dict[str, Any]:
    run = fields if "examples" in fields else BY_RATE | fields
    status, document = answered("answer", question(json.dumps(run).encode()))
    assert status == 200, document
    return document


def test_every_choice_of_the_page_is_one_of_the_server() -> None:
    written = files("hockeystick.app.explore").joinpath("static/explore.html").read_text(encoding="utf-8")
    for name in ("sampling", "adjacency", "batches"):
        shown = re.findall('value="([^"]+)"', written.partition(f'<select id="{name}">')[2].partition("</select>")[0])
        assert shown, name
        assert set(shown) <= set(choices()[name])


def test_every_sampler_of_the_server_is_answered_by_what_a_question_may_say() -> None:
    assert "without-replacement" in choices()["sampling"]
    for sampling in choices()["sampling"]:
        assert asked(**BY_SIZE | {"sampling": sampling, "adjacency": "remove"})["epsilon"]["upper"] < 30.0
    with pytest.raises(BadQuestionError, match=r"sampling must be one of poisson, without-replacement$"):
        question(json.dumps(BY_SIZE | {"sampling": "cut-batches"}).encode())


def test_the_server_answers_what_the_functions_answer(client: TestClient) -> None:
    answer = client.post("/api/answer", json=BY_RATE)
    assert answer.status_code == 200
    assert answer.json() == asked()
    for view in VIEWS:
        assert client.post(f"/api/{view}", json=BY_RATE).status_code == 200


@pytest.mark.parametrize(
    "fields", [BY_RATE, BY_SIZE, FIXED_SIZE | {"noise_multiplier": 2.0}, BY_RATE | {"adjacency": "substitute"}]
)
def test_page_python_and_command_give_the_same_digits(
    fields: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    status, document = answered("answer", question(json.dumps(fields).encode()))
    assert status == 200
    shown = document["epsilon"]["lower"], document["epsilon"]["upper"]
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(document["python"], {})  # noqa: S102 - the code that the page shows is what is tested
    assert tuple(map(float, printed.getvalue().split())) == shown
    assert main([*shlex.split(document["command"])[1:], "--json"]) == Status.OK
    told = json.loads(capsys.readouterr().out)
    assert (told["results"][0]["lower"], told["results"][0]["upper"]) == shown
    assert told["specification"] == json.loads(document["specification"])
    assert float(document["bracket"].strip("[]").split(", ")[1]) >= shown[1]


def test_what_is_drawn_holds_the_curve_between_its_points() -> None:
    """Truth by another accountant; the outline is straight in ln delta between its vertices."""
    live, fine = asked()["curve"], asked(detail="fine")["curve"]
    curve = hs.account(hs.Gaussian(1.0).poisson(0.01) * 2000, accountant=hs.accountants.Certified(1e-8))
    for epsilon in (0.111, 0.777, 1.618, 2.345, 3.21):
        truth = curve.delta(epsilon)
        for drawn in (live, fine):
            low, high = (line_at(drawn[side], epsilon) for side in ("below", "above"))
            assert low <= truth.upper
            assert truth.lower <= high
        assert high / low < 1.15  # at rest it is narrow


def test_a_run_whose_values_take_long_is_answered_by_its_number_first() -> None:
    fields = FIXED_SIZE | {"adjacency": "substitute", "steps": 3}
    moving = asked(**fields)
    assert moving["later"]
    assert "curve" not in moving
    curve = hs.account(
        hs.dpsgd.run(1.0, 3, batch_size=50, population=5000, sampling="without-replacement"), "substitute"
    )
    bound = curve.epsilon(1e-5)
    assert (moving["epsilon"]["lower"], moving["epsilon"]["upper"]) == (bound.lower, bound.upper)


def line_at(line: list[list[float]], x: float) -> float:
    import numpy as np

    return float(np.exp(np.interp(x, line[0], np.log(line[1]))))


def test_a_locked_epsilon_is_met_by_the_noise_found() -> None:
    fields = {k: v for k, v in BY_RATE.items() if k != "noise_multiplier"} | {"target_epsilon": 1.0, "detail": "fine"}
    status, document = answered("answer", question(json.dumps(fields).encode()))
    assert status == 200
    assert document["epsilon"]["upper"] <= 1.0
    unsafe = hs.Gaussian(document["met"]["unsafe"]).poisson(0.01) * 2000
    assert hs.account(unsafe).delta(1.0).lower > 1e-5


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_noise_foreseen_while_a_slider_moves_is_proved(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was foreseen wrongly, the answer is that of a calibration."""
    foreseen = answers.foreseen_noise
    monkeypatch.setattr(answers, "foreseen_noise", lambda *one, **more: factor * foreseen(*one, **more))
    fields = {k: v for k, v in BY_RATE.items() if k != "noise_multiplier"} | {"target_epsilon": 1.0, "detail": "live"}
    _, document = answered("answer", question(json.dumps(fields).encode()))
    assert 0.9995 <= document["epsilon"]["upper"] <= 1.0
    assert ("unsafe" in document["met"]) == (factor < 1.0)


def test_stairs_hold_every_count_between_theirs() -> None:
    _, found = answered("steps", question(json.dumps(BY_RATE).encode()))
    for count in (150, 999, 2001, 7777):
        truth = hs.account(hs.Gaussian(1.0).poisson(0.01) * count).epsilon(1e-5)
        after = next(i for i, x in enumerate(found["x"]) if x >= count)
        assert found["lower"][after - 1] <= truth.upper
        assert truth.lower <= found["upper"][after]


@pytest.mark.parametrize("fields", [{"batches": "shuffled"}, {"examples": 1000, "delta": 1e-2}])
def test_a_broken_assumption_opens_every_answer(fields: dict[str, Any], tmp_path: Path) -> None:
    asking = question(json.dumps(BY_RATE | fields).encode())
    for view in ("answer", "steps", "rates"):
        assert answered(view, asking)[1]["verdict"].startswith("NOT CERTIFIED")
    answer = answered("answer", asking)[1]
    assert "certified" not in answer["headline"]
    assert "NOT CERTIFIED" in answered("receipt", asking)[1]["html"]
    assert 'class="said">NOT CERTIFIED' in answered("picture", asking)[1]["svg"]
    spec = tmp_path / "spec.json"
    spec.write_text(answer["specification"], encoding="utf-8")
    command = [str(spec) if word == "spec.json" else word for word in shlex.split(answer["command"])[1:]]
    assert main(command) == Status.NOT_CERTIFIED


def test_what_has_no_answer_says_why() -> None:
    one_way = question(json.dumps(BY_RATE | {"adjacency": "remove"}).encode())
    assert answered("answer", one_way)[1]["trade_off"] is None
    by_rate = question(json.dumps(BY_RATE | {"sampling": "without-replacement"}).encode())
    status, document = answered("answer", by_rate)
    assert status == 422
    assert "batch_size" in document["error"]


# ------------------------------------------------------------------------------------------------------------ refusals

WRONG: tuple[Any, ...] = (True, "1", [], {}, [1.0], -1, 0, 1e400, -0.5, 10**30, "x" * 200, {"a": 1}, 1e-320)


def malformed(generator: random.Random) -> dict[str, Any]:
    """A request that is wrong in one way."""
    good = dict(generator.choice([BY_RATE, BY_SIZE, FIXED_SIZE]))
    path = f"/api/{generator.choice(list(VIEWS))}"
    json_type = {"content-type": "application/json"}
    kind = generator.randrange(9)
    if kind == 0:
        good.pop(generator.choice(["steps", "delta", "adjacency", "sampling", "noise_multiplier"]))
    elif kind == 1:
        good[generator.choice(list(good))] = generator.choice(WRONG)
    elif kind == 2:
        good["".join(generator.choices("abcxyz_", k=8))] = 1
    text = json.dumps(good)
    if kind == 3:
        text = text[: generator.randrange(len(text))]
    elif kind == 4:
        text = generator.choice(["NaN", "[" * 2000, "null", "[1, 2]", '"run"', "\x00", "", "{" * 1000, "1e999"])
    elif kind == 5:
        text += " " * MOST_BYTES * generator.randrange(1, 50)
    elif kind == 6:
        json_type = {"content-type": generator.choice(["text/plain", "application/x-www-form-urlencoded", ""])}
    elif kind == 7:
        path = generator.choice(
            ["/api/", "/api/none", "/../pyproject.toml", "/static/explore.js", "/%00", "/api/answer/1"]
        )
    body = text.encode()
    if kind == 8:
        body = generator.randbytes(generator.randrange(1, 300))
    return {"url": path, "content": body, "headers": json_type}


def test_hundreds_of_malformed_requests_are_refused_and_the_server_lives(client: TestClient) -> None:
    generator = random.Random(18)  # noqa: S311 - no secret
    for number in range(300):
        request = malformed(generator)
        reply = client.post(**request)
        assert 400 <= reply.status_code < 500, (number, request["url"], request["content"][:200], reply.status_code)
    assert client.post("/api/answer", json=BY_RATE).json() == asked()


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": f"evil.example:{PORT}"},
        {"host": "127.0.0.1"},
        {"host": f"127.0.0.1:{PORT}.evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://{HOST}"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_another_host_or_origin_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/api/answer", json=BY_RATE, headers=headers).status_code in {403, 421}
    assert client.get("/", headers=headers).status_code in {403, 421}


def test_our_own_page_is_served_with_nothing_from_elsewhere(client: TestClient) -> None:
    for path in ("/", "/explore.css", "/explore.js", "/uPlot.iife.min.js", "/uPlot.min.css"):
        reply = client.get(path, headers={"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"})
        assert reply.status_code == 200
        assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "://" not in client.get("/").text


def test_a_body_is_read_no_further_than_it_may_be_long() -> None:
    with pytest.raises(BadQuestionError, match="JSON"):
        question(b"[" * 100_000)


# ------------------------------------------------------------------------------------------------------- slow questions


def test_a_question_that_takes_too_long_is_given_up_and_the_next_is_answered(client: TestClient) -> None:
    workers: Workers = client.app.state.workers["rates"]  # type: ignore[attr-defined]  # an application of Starlette
    limit, workers.seconds = workers.seconds, 0.0
    try:
        assert client.post("/api/rates", json=BY_RATE).status_code == 503
    finally:
        workers.seconds = limit
    assert client.post("/api/rates", json=BY_RATE).status_code == 200


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot suspend a process")
def test_a_slow_question_does_not_block_the_next(client: TestClient) -> None:
    workers: Workers = client.app.state.workers["answer"]  # type: ignore[attr-defined]  # an application of Starlette
    sleeping = workers._idle.queue[-1].process.pid
    asking = question(json.dumps(BY_RATE).encode())
    got: list[Any] = []
    os.kill(sleeping, signal.SIGSTOP)
    try:
        slow = threading.Thread(target=lambda: got.append(workers.ask("answer", asking)))
        slow.start()
        while len(workers._idle.queue) > 1:
            pass
        assert workers.ask("answer", asking) == (200, asked())
        assert not got
    finally:
        os.kill(sleeping, signal.SIGCONT)
    slow.join()
    assert got == [(200, asked())]


def test_an_answer_is_sent_without_waiting_for_word_of_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    import uvicorn

    seen: list[int] = []

    def run(_: uvicorn.Server, sockets: list[socket.socket]) -> None:
        seen.append(sockets[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(uvicorn.Server, "run", run)
    serve(0, opened=lambda _: None)
    assert seen == [1]
