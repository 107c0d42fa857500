"""Only one thread loads a model at a time: meanwhile transformers replaces functions of its classes for all threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from askew.models.find import one_at_a_time


def test_threads_load_models_one_after_the_other_and_a_load_may_need_another():
    loading, most, seen = 0, 0, threading.Lock()

    @one_at_a_time
    def inner():
        nonlocal loading, most
        with seen:
            loading += 1
            most = max(most, loading)
        time.sleep(0.01)
        with seen:
            loading -= 1
        return 1

    outer = one_at_a_time(lambda: inner() + 1)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda load: load(), [inner, outer] * 8)) == [1, 2] * 8
    assert most == 1
