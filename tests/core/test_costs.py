"""Counting what models read: nested counts, threads, and nothing outside of a block."""

from threading import Thread

from askew.core.costs import count_model_calls, counting_model_calls


def test_each_open_block_counts_what_happens_inside_it():
    count_model_calls(5)
    with counting_model_calls() as outer:
        count_model_calls(2)
        with counting_model_calls() as inner:
            count_model_calls(3)
        count_model_calls(1)
    count_model_calls(7)
    assert (outer.texts, inner.texts) == (6, 3)


def test_other_threads_are_counted_too():
    with counting_model_calls() as counted:
        workers = [Thread(target=count_model_calls, args=(4,)) for _ in range(8)]
        for one in workers:
            one.start()
        for one in workers:
            one.join()
    assert counted.texts == 32
