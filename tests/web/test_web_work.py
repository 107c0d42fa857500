"""Work is bounded, not done twice, and what is kept does not grow; rates and tokens."""

import asyncio
import contextvars
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.ui.web.guard import MOST_CLIENTS, SECONDS, Access, Rate
from askew.ui.web.settings import Settings, is_loopback
from askew.ui.web.site import reformulate_together
from askew.ui.web.work import CLIENT, MOST_TOGETHER, BatchWork, Busy, Kept, Work

TOKEN = "a-token-of-some-length"


def test_what_many_want_at_once_is_made_once():
    made = []

    async def go():
        work = Work(2, 10, 1000)
        answers = await asyncio.gather(*(work.bytes_of("k", lambda: made.append(1) or b"x") for _ in range(20)))
        again = await work.bytes_of("k", lambda: made.append(1) or b"y")
        work.close()
        return answers, again

    answers, again = asyncio.run(go())
    assert set(answers) == {b"x"} and again == b"x" and made == [1]


def test_an_error_is_not_kept_and_everyone_who_waited_hears_of_it():
    async def go():
        work = Work(1, 10, 1000)

        def fail():
            raise ValueError("no")

        found = await asyncio.gather(*(work.bytes_of("k", fail) for _ in range(3)), return_exceptions=True)
        after = await work.bytes_of("k", lambda: b"now")
        work.close()
        return found, after, work.taken

    found, after, taken = asyncio.run(go())
    assert all(isinstance(one, ValueError) for one in found) and after == b"now" and taken == 0


def test_more_than_may_wait_is_refused_at_once_and_later_there_is_room_again():
    async def go():
        work, gate = Work(1, 1, 1000), threading.Event()
        held = [asyncio.ensure_future(work.run(gate.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy) as refused:
            await work.run(lambda: None)
        gate.set()
        await asyncio.gather(*held)
        done = await work.run(lambda: "again")
        work.close()
        return refused.value.seconds, done, work.taken

    assert asyncio.run(go()) == (1, "again", 0)


def test_who_would_wait_too_long_is_told_for_how_long():
    async def go():
        work, gate = Work(1, 100, 1000, seconds=10.0), threading.Event()
        work._each = 4.0
        held = [asyncio.ensure_future(work.run(gate.wait)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Busy) as refused:
            await work.run(lambda: None)
        gate.set()
        await asyncio.gather(*held)
        assert await work.run(lambda: "again") == "again"
        work.close()
        return refused.value.seconds, work._each < 4.0

    assert asyncio.run(go()) == (13, True)


def test_work_whose_asker_has_left_is_counted_until_it_is_done():
    async def go():
        work, gate = Work(1, 0, 1000), threading.Event()
        held = asyncio.ensure_future(work.run(gate.wait))
        await asyncio.sleep(0)
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)
        during = work.taken
        gate.set()
        while work.taken:
            await asyncio.sleep(0)
        work.close()
        return during

    assert asyncio.run(go()) == 1


async def joined(work, item):
    (found,) = await work.join(item)
    if isinstance(found, BaseException):
        raise found
    return found


def held_batches(gate, sizes):
    """Answers that wait for the gate, and the size of each batch."""

    def answer(items):
        gate.wait()
        sizes.append(len(items))
        return [ValueError(item) if item == "wrong" else item.encode() for item in items]

    return answer


def test_requests_that_wait_together_are_answered_together_each_with_its_own_answer():
    async def go():
        gate, sizes = threading.Event(), []
        work = BatchWork(held_batches(gate, sizes), 200, 1000)
        work._each = 1e-6
        first = asyncio.ensure_future(joined(work, "first"))
        await asyncio.sleep(0)
        names = [f"n{number}" for number in range(MOST_TOGETHER + 3)]
        rest = [asyncio.ensure_future(joined(work, name)) for name in ("wrong", *names)]
        await asyncio.sleep(0)
        gate.set()
        found = await asyncio.gather(first, *rest, return_exceptions=True)
        work.close()
        return found, sizes, work.taken, names

    found, sizes, taken, names = asyncio.run(go())
    assert found[0] == b"first" and isinstance(found[1], ValueError)
    assert found[2:] == [name.encode() for name in names]
    assert sizes[:2] == [1, MOST_TOGETHER] and sum(sizes) == len(found) and taken == 0


def test_a_batch_of_slow_requests_has_one_request():
    async def go():
        gate, sizes = threading.Event(), []
        work = BatchWork(held_batches(gate, sizes), 200, 1000)
        work._each = 100.0
        held = [asyncio.ensure_future(joined(work, str(number))) for number in range(3)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*held)
        work.close()
        return sizes

    assert asyncio.run(go()) == [1, 1, 1]


def test_more_requests_than_may_wait_for_a_batch_are_refused_at_once():
    async def go():
        gate = threading.Event()
        work = BatchWork(held_batches(gate, []), 1, 1000)
        held = [asyncio.ensure_future(joined(work, str(number))) for number in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await joined(work, "one more")
        gate.set()
        found = await asyncio.gather(*held)
        again = await joined(work, "again")
        work.close()
        return found, again

    assert asyncio.run(go()) == ([b"0", b"1"], b"again")


def test_a_batch_that_fails_as_a_whole_fails_for_each_request_and_the_next_one_works():
    async def go():
        failing = [True]

        def answer(items):
            if failing.pop() if failing else False:
                raise RuntimeError("all")
            return [b"x"] * len(items)

        work = BatchWork(answer, 10, 1000)
        with pytest.raises(RuntimeError):
            await joined(work, "a")
        found = await joined(work, "b")
        work.close()
        return found, work.taken

    assert asyncio.run(go()) == (b"x", 0)


def test_closing_cancels_the_requests_that_wait():
    async def go():
        gate = threading.Event()
        work = BatchWork(held_batches(gate, []), 10, 1000)
        work._each = 100.0
        held = [asyncio.ensure_future(joined(work, str(number))) for number in range(3)]
        while sum(map(len, work._waiting.values())) != 2:
            await asyncio.sleep(0)
        gate.set()
        work.close()
        return await asyncio.gather(*held, return_exceptions=True)

    found = asyncio.run(go())
    assert found[0] == b"0" and all(isinstance(one, asyncio.CancelledError) for one in found[1:])


def of_client(name, start):
    """Start a coroutine as the client of this name."""
    context = contextvars.copy_context()
    context.run(CLIENT.set, name)
    return asyncio.get_running_loop().create_task(start, context=context)


def test_what_waits_is_given_up_when_its_client_has_gone():
    async def go():
        gate, sizes = threading.Event(), []
        work = BatchWork(held_batches(gate, sizes), 10, 1000)
        work._each = 100.0
        held = [asyncio.ensure_future(joined(work, str(number))) for number in range(5)]
        await asyncio.sleep(0)
        for gone in held[1:4]:
            gone.cancel()
        await asyncio.gather(*held[1:4], return_exceptions=True)
        during = work.taken
        gate.set()
        found = await asyncio.gather(held[0], held[4])
        work.close()
        return during, found, sizes

    assert asyncio.run(go()) == (2, [b"0", b"4"], [1, 1])


def test_a_shared_answer_is_given_up_only_when_all_its_clients_have_gone():
    async def go():
        gate, made = threading.Event(), []
        work = Work(1, 10, 1000)
        busy = asyncio.ensure_future(work.run(gate.wait))
        shared = [asyncio.ensure_future(work.bytes_of("k", lambda: made.append("k") or b"k")) for _ in range(3)]
        alone = [asyncio.ensure_future(work.bytes_of("a", lambda: made.append("a") or b"a")) for _ in range(2)]
        await asyncio.sleep(0)
        for gone in (*shared[:2], *alone):
            gone.cancel()
        await asyncio.gather(*shared[:2], *alone, return_exceptions=True)
        gate.set()
        found = await shared[2]
        again = await work.bytes_of("a", lambda: b"again")
        await busy
        work.close()
        return found, again, made, work.taken

    assert asyncio.run(go()) == (b"k", b"again", ["k"], 0)


def test_clients_take_turns_and_one_that_sends_many_delays_and_refuses_no_other():
    async def go():
        gate, order = threading.Event(), []

        def answer(items):
            gate.wait()
            order.extend(items)
            return [b""] * len(items)

        work = BatchWork(answer, 10, 1000, seconds=1000.0)
        work._each = 100.0
        many = [of_client("many", joined(work, f"m{number}")) for number in range(10)]
        await asyncio.sleep(0)
        one = [of_client("one", joined(work, f"o{number}")) for number in range(3)]
        await asyncio.sleep(0)
        refused = await asyncio.gather(of_client("many", joined(work, "more")), return_exceptions=True)
        gate.set()
        work._each = 1000.0
        await asyncio.gather(*many, *one)
        work.close()
        return order, refused

    order, (refused,) = asyncio.run(go())
    assert isinstance(refused, Busy)
    assert order[:6] == ["m0", "m1", "o0", "m2", "o1", "m3"] and len(order) == 13


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 40)), max_size=60))
def test_what_is_kept_never_takes_more_than_it_may(puts):
    kept = Kept(100)
    for key, size in puts:
        kept.put(key, b"x" * size)
        assert kept.size == sum(len(value) for value in kept._held.values()) <= 100
        assert kept.get(key) in (None, b"x" * size) or size > 25


def test_the_answer_that_was_not_used_for_longest_goes_first():
    kept = Kept(40)
    for key in "abcd":
        kept.put(key, b"x" * 10)
    assert kept.get("a")
    kept.put("e", b"x" * 10)
    assert kept.get("b") is None and kept.get("a") and kept.get("e")


def test_a_client_has_its_burst_then_waits_and_then_may_ask_again():
    now = [0.0]
    rate = Rate(2.0, 3, clock=lambda: now[0])
    assert [rate.take("a") for _ in range(4)] == [0, 0, 0, 1]
    assert rate.take("b") == 0
    now[0] = 0.5
    assert [rate.take("a"), rate.take("a")] == [0, 1]
    now[0] = 100.0
    assert [rate.take("a") for _ in range(4)] == [0, 0, 0, 1]


def test_clients_are_forgotten_so_that_their_number_is_bounded():
    rate = Rate(1.0, 1, clock=lambda: 0.0)
    for number in range(MOST_CLIENTS + 50):
        rate.take(str(number))
    assert len(rate) == MOST_CLIENTS


def test_a_token_opens_by_header_and_by_a_cookie_that_does_not_hold_it():
    now = [1000.0]
    access = Access(TOKEN, clock=lambda: now[0])
    assert access.allows("/", {"authorization": f"Bearer {TOKEN}"})
    cookie = access.cookie()
    assert TOKEN not in cookie
    assert access.allows("/", {"cookie": f"askew={cookie}; other=1"})
    now[0] += SECONDS + 1
    assert not access.allows("/", {"cookie": f"askew={cookie}"})


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}, {"authorization": f"Basic {TOKEN}"},
        {"cookie": "askew="}, {"cookie": "askew=99999999999."}, {"cookie": "askew=²²²²²²²²²²²²²².x"},
        {"cookie": f"askew={'9' * 5000}.x"}, {"authorization": "Bearer ünïcödé"}, {"cookie": "askew=\"; =;;"},
    ],
)  # fmt: skip
def test_nothing_else_opens(headers):
    access = Access(TOKEN)
    assert not access.allows("/pairs", headers)
    assert access.allows("/login", headers) and access.allows("/static/app.js", headers)


def test_a_cookie_of_another_token_or_with_another_end_does_not_open():
    other = Access("another-token-than-ours").cookie()
    mine = Access(TOKEN)
    until, _, signed = mine.cookie().partition(".")
    assert not mine.allows("/", {"cookie": f"askew={other}"})
    assert not mine.allows("/", {"cookie": f"askew={int(until) + 1}.{signed}"})


def test_without_a_token_all_is_open():
    assert Access(None).allows("/", {}) and not Access(None).is_token("")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.3.2.1", "[::1]"])
def test_loopback_needs_no_token(host):
    assert is_loopback(host) and Settings(host=host).loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.5", "example.org", "localhost.evil.org", ""])
def test_every_other_address_needs_a_token(host):
    with pytest.raises(ConfigError, match="ASKEW_TOKEN"):
        Settings(host=host)
    assert not Settings(host=host, token=TOKEN).loopback


def test_a_short_token_and_a_wrong_port_are_refused():
    with pytest.raises(ConfigError, match="16"):
        Settings(token="short")
    with pytest.raises(ConfigError, match="--port"):
        Settings(port=70000)


class HalfBroken:
    """An explorer that cannot answer queries together, and fails on one query of its own."""

    def reformulate_many(self, queries):
        raise TypeError(f"about {queries[0]}")

    def reformulate(self, query):
        if query == "bad":
            raise ValueError("bad")
        return f"<{query}>"


def test_a_batch_that_fails_is_answered_query_by_query_and_logged_without_its_queries(caplog):
    first, second = reformulate_together(HalfBroken(), ["secret", "bad"])
    assert first == "<secret>" and isinstance(second, ValueError)
    assert "2 queries together failed: TypeError at" in caplog.text and "secret" not in caplog.text
