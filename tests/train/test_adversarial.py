"""The adversary beside a ranker: what it unlearns, and that nothing of it is kept."""

import math

import numpy as np
import pytest
from toy_encoder import make_encoder

from askew.train.common import Schedule
from askew.train.crossencoder import CrossEncoder, RankerSettings, RankerTexts, fit, ramp, with_adversary
from askew.train.negatives import groups_of

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
pytest.importorskip("accelerate", reason="the extra 'train' is not installed")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_encoder(tmp_path_factory.mktemp("tiny"))


def settings_for(tiny, **more):
    return RankerSettings(tiny, most_tokens=24, most_left_tokens=8, **more)


def test_the_reversal_begins_at_nothing_and_ends_near_one():
    # 2 / (1 + exp(-10 p)) - 1, which is tanh(5 p).
    assert ramp(0.0) == 0.0
    assert ramp(0.5) == pytest.approx(math.tanh(2.5))
    assert 0.999 < ramp(1.0) < 1.0


def gradients(tiny, strength, done):
    """The gradients of the adversary's loss at the encoder's first weights and at the head."""
    encoder = CrossEncoder.load(settings_for(tiny), "cpu")
    torch.manual_seed(1)
    both = with_adversary(encoder.model, 2, strength)
    both.eval()
    answer = both(**encoder.batch(["who wrote", "is sky"], ["his book", "blue cars"]))
    both.adversary_loss(answer, torch.tensor([1, 0]), torch.ones(2), done).backward()
    word = encoder.model.bert.embeddings.word_embeddings.weight.grad
    return word.clone(), both.adversary[0].weight.grad.clone()


def test_what_helps_the_head_is_unlearned_by_the_encoder(tiny):
    word, head = gradients(tiny, 1.0, 1.0)
    stronger, same_head = gradients(tiny, 3.0, 1.0)
    assert torch.allclose(stronger, 3 * word, atol=1e-7) and word.abs().max() > 0
    assert torch.allclose(head, same_head), "the head itself learns as ever"
    # Without the reversal the gradient would be the opposite: a strength below zero turns it back.
    plain, _ = gradients(tiny, -1.0, 1.0)
    assert torch.allclose(plain, -word, atol=1e-7)


def test_at_the_beginning_the_encoder_hears_nothing_of_the_head(tiny):
    word, head = gradients(tiny, 1.0, 0.0)
    assert word.abs().max() == 0 and head.abs().max() > 0


def test_documents_that_are_not_there_are_not_guessed_at(tiny):
    encoder = CrossEncoder.load(settings_for(tiny), "cpu")
    both = with_adversary(encoder.model, 2, 1.0)
    both.eval()
    answer = both(**encoder.batch(["who", "who"], ["his book", "blue cars"]))
    there = torch.tensor([1.0, 0.0])
    losses = [both.adversary_loss(answer, torch.tensor([1, group]), there, 1.0).item() for group in (0, 1)]
    assert losses[0] == losses[1] > 0


def test_the_ranker_that_is_kept_has_no_adversary_in_it(tiny, tmp_path):
    relevant, negatives = (np.arange(4), np.zeros(4, int)), (np.repeat(np.arange(4), 2), np.tile([1, 2], 4))
    texts = RankerTexts(
        ["who wrote the book"] * 4, ["his book", "blue sky", "her cars"], np.array([1.0, 0, 1]), np.array([1, 0, 2])
    )
    pace = Schedule(epochs=1.0, batch_size=2, learning_rate=1e-3, warmup=0.0, save_every=0, seed=1)
    examples = groups_of(relevant, negatives, 4, each=2)
    encoder = fit(texts, examples, settings_for(tiny, adversary=1.0), pace, tmp_path, "cpu")
    plain = CrossEncoder.load(settings_for(tiny), "cpu")
    assert set(encoder.model.state_dict()) == set(plain.model.state_dict())
    before, after = (one.model.bert.embeddings.word_embeddings.weight for one in (plain, encoder))
    assert not torch.equal(before, after)
