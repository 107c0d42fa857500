"""When requests go, by a clock of the test's own."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.pace import RateLimit, back_off, retry_after


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_without_a_limit_nobody_waits():
    assert [RateLimit().reserve() for _ in range(3)] == [0.0, 0.0, 0.0]


def test_thirty_a_minute_is_one_every_two_seconds():
    clock = Clock()
    pace = RateLimit(30, clock)
    assert [pace.reserve() for _ in range(4)] == [0.0, 2.0, 4.0, 6.0]
    clock.now += 7.0
    # After seven seconds the debt of three places is paid, and half a place is saved.
    assert pace.reserve() == pytest.approx(1.0)


def test_the_bucket_saves_no_more_than_one_second():
    clock = Clock()
    pace = RateLimit(180, clock)
    clock.now += 3600
    assert [pace.reserve() for _ in range(4)] == [0.0, 0.0, 0.0, pytest.approx(1 / 3)]


@given(st.integers(1, 600), st.lists(st.floats(0, 30), min_size=1, max_size=200))
def test_in_any_minute_no_more_go_than_allowed_and_one_second_more(per_minute, gaps):
    clock, gone = Clock(), []
    pace = RateLimit(per_minute, clock)
    for gap in gaps:
        clock.now += gap
        gone.append(clock.now + pace.reserve())
    for start in gone:
        within = sum(start <= moment < start + 60 for moment in gone)
        assert within <= per_minute + max(1.0, per_minute / 60) + 1e-6


def test_a_hold_is_for_everybody_and_the_longest_wins():
    clock = Clock()
    pace = RateLimit(None, clock)
    pace.hold(5.0)
    pace.hold(1.0)
    assert pace.held() == 5.0
    clock.now += 6.0
    assert pace.held() == 0.0


NOW = datetime(2026, 1, 5, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 0.25 ", 0.25),
        ("-3", 0.0),
        ("inf", None),
        ("nan", None),
        ("Mon, 05 Jan 2026 12:00:30 GMT", 30.0),
        ("Mon, 05 Jan 2026 12:00:30 -0000", 30.0),
        ("Mon, 05 Jan 2026 11:00:00 GMT", 0.0),
        ("Mon, 05 Jan 2026 14:01:00 +0200", 60.0),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value, seconds):
    assert retry_after(value, NOW) == seconds


@given(st.text(max_size=40))
def test_any_retry_after_is_a_number_or_nothing(value):
    found = retry_after(value, NOW)
    assert found is None or found >= 0


@given(st.integers(1, 2000), st.integers(0, 2**40), st.text(max_size=10))
def test_a_rest_is_between_a_half_and_the_whole_of_the_doubled_base(attempt, seed, key):
    whole = min(60.0, 0.5 * 2.0 ** min(attempt - 1, 60))
    rest = back_off(0.5, 60.0, attempt, seed, key)
    assert whole / 2 <= rest <= whole
    assert rest == back_off(0.5, 60.0, attempt, seed, key)


def test_requests_that_fail_together_do_not_come_back_together():
    assert len({back_off(1.0, 60.0, 1, 0, str(i)) for i in range(50)}) == 50
