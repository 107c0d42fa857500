"""A batch that does not fit into memory is halved until it does, and the size that fitted is kept."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the extra 'lm'")

from askew.core.errors import StageError  # noqa: E402
from askew.models.find import halved, halving  # noqa: E402


class Device:
    """A model with room for so many rows; it remembers the batches that it was given."""

    def __init__(self, room):
        self.room, self.tried = room, []

    def encode(self, texts, batch_size):
        self.tried.append(batch_size)
        if min(batch_size, len(texts)) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [text.upper() for text in texts]


def test_a_batch_is_halved_until_it_fits_and_the_next_call_begins_there():
    device, texts = Device(10), list("abcdefghijklmnopqrstuvwxyz")
    for _ in range(2):
        found = halving(device, 64, lambda size: device.encode(texts, size))
        assert found == [text.upper() for text in texts]
    assert device.tried == [64, 32, 16, 8, 8]


def test_a_smaller_batch_than_what_fitted_is_taken_as_it_is():
    device = Device(10)
    halving(device, 16, lambda size: device.encode(list("abcdefghijkl"), size))
    halving(device, 4, lambda size: device.encode(list("ab"), size))
    assert device.tried == [16, 8, 4]


def test_a_size_that_did_not_fit_is_not_kept():
    device = Device(0)
    with pytest.raises(StageError):
        halving(device, 4, lambda size: device.encode(["a"], size))
    device.room = 10
    halving(device, 4, lambda size: device.encode(["a"], size))
    assert device.tried == [4, 2, 1, 4]


def test_rows_that_do_not_fit_together_are_done_in_halves_in_order():
    tried = []

    def work(rows):
        tried.append(len(rows))
        if len(rows) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [row * 10 for row in rows]

    assert halved(range(10), work) == [row * 10 for row in range(10)]
    assert tried == [10, 5, 2, 3, 5, 2, 3]


@pytest.mark.parametrize("run", [lambda device: halving(device, 4, lambda size: device.encode(["a"], size)),
                                 lambda device: halved([0], lambda rows: device.encode(["a"], 1))])  # fmt: skip
def test_one_text_that_does_not_fit_is_one_line(run):
    with pytest.raises(StageError) as refused:
        run(Device(0))
    assert refused.value.code == "out-of-memory"


def test_another_error_is_not_taken_for_want_of_memory():
    def fail(size):
        raise RuntimeError("a wrong shape")

    with pytest.raises(RuntimeError, match="a wrong shape"):
        halving(Device(1), 8, fail)
