"""The recurrent networks of RePair: attention, copying, losses and search against values by hand; what they learn."""

import itertools
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import DataError
from askew.train.common import Schedule

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
pytest.importorskip("accelerate", reason="the extra 'train' is not installed")
BENCHMARKS = str(Path(__file__).resolve().parents[2] / "benchmarks")
if BENCHMARKS not in sys.path:
    sys.path.insert(0, BENCHMARKS)

from word_networks import (  # noqa: E402
    END,
    START,
    UNKNOWN,
    Sizes,
    WordRewriter,
    Words,
    attend,
    fit_words,
    mix,
    pad_batch,
)

SMALL = Sizes(embedding=5, hidden=6, session=7, dropout=0.0, written=6, read=50, most_words=4)
SOURCES, TARGETS = ["who wrote zebra", "is it blue"], ["book zebra", "blue colour book"]


def made(kind, sizes=SMALL, seed=3):
    torch.manual_seed(seed)
    found = WordRewriter.new(kind, Words.of(SOURCES, TARGETS, sizes), sizes)
    found.network.eval()
    return found


def batch_of(rewriter, texts, before=None):
    sessions = [rewriter.session(text, before[i] if before else ()) for i, text in enumerate(texts)]
    return pad_batch(rewriter.words, sessions, rewriter.copying)[0]


def test_words_that_are_written_come_first_and_the_most_frequent_before_the_others():
    words = Words.of(SOURCES, TARGETS, Sizes(written=2, read=5))
    # book twice; of those that come once blue is first in the alphabet; then what is most frequent in both.
    assert words.words == ("book", "blue", "zebra", "colour", "is")
    assert words.written == 4 + 2
    assert words.read(["book", "who", "is"]) == [4, UNKNOWN, 8]


def test_a_word_beyond_the_vocabulary_gets_a_number_of_its_own_only_where_it_can_be_copied():
    words = Words.of(SOURCES, TARGETS, Sizes(written=2, read=5))
    extras = words.extras(["book", "zebra", "qq", "zebra"])
    assert extras == {"zebra": 6, "qq": 7}
    assert words.write(["qq", "book", "colour"], extras) == [7, 4, UNKNOWN]
    assert words.text([7, 4, 6], extras) == "qq book zebra"


def test_attention_is_the_softmax_of_state_matrix_read_and_nothing_beyond_the_end():
    matrix = torch.nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        matrix.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    states, read = torch.tensor([[[1.0, 1.0]]]), torch.tensor([[[2.0, 0.0], [0.0, 0.5], [9.0, 9.0]]])
    found = attend(matrix, states, read, torch.tensor([[True, True, False]]))
    # Scores: 1*1*2 = 2 and 1*2*0.5 = 1; the third is not there.
    first = math.e**2 / (math.e**2 + math.e)
    assert found[0, 0].tolist() == pytest.approx([first, 1 - first, 0.0])


def test_writing_and_copying_are_mixed_by_the_gate():
    write = torch.tensor([[[0.0, 0.0, 0.0, 0.25, 0.75]]])
    weights, gate = torch.tensor([[[0.7, 0.1, 0.2]]]), torch.tensor([[[0.4]]])
    found = mix(write, weights, gate, torch.tensor([[4, 5, 4]]), 1)
    # 0.6 * 0.25; 0.6 * 0.75 + 0.4 * (0.7 + 0.2), as the word was read twice; 0.4 * 0.1 beyond the vocabulary.
    assert found[0, 0].tolist() == pytest.approx([0.0, 0.0, 0.0, 0.15, 0.81, 0.04])


def test_the_gradient_of_the_gate_is_that_of_the_formula():
    write, weights = torch.tensor([[[0.25, 0.75]]]), torch.tensor([[[0.9, 0.1]]], requires_grad=True)
    gate = torch.tensor([[[0.4]]], requires_grad=True)
    chance = mix(write, weights, gate, torch.tensor([[1, 2]]), 1)[0, 0, 1]
    (-torch.log(chance)).backward()
    # p = 0.6 * 0.75 + 0.4 * 0.9 = 0.81; dp/dgate = 0.9 - 0.75; dp/dweight = gate.
    assert float(gate.grad) == pytest.approx(-(0.9 - 0.75) / 0.81)
    assert weights.grad[0, 0].tolist() == pytest.approx([-0.4 / 0.81, 0.0])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 5), st.integers(1, 4), st.integers(0, 10_000))
def test_the_chances_of_all_words_sum_to_one(extra, read, seed):
    draw = torch.Generator().manual_seed(seed)
    write = torch.softmax(torch.randn(2, 3, 7, generator=draw), -1)
    weights = torch.softmax(torch.randn(2, 3, read, generator=draw), -1)
    gate = torch.rand(2, 3, 1, generator=draw)
    copies = torch.randint(0, 7 + extra, (2, read), generator=draw)
    found = mix(write, weights, gate, copies, extra)
    assert found.shape == (2, 3, 7 + extra)
    assert torch.allclose(found.sum(-1), torch.ones(2, 3), atol=1e-5)


def test_a_network_forced_to_copy_copies_and_one_forced_to_write_never_does():
    rewriter = made("acg")
    for bias, expected in ((50.0, "qqq qqq qqq qqq"), (-50.0, None)):
        with torch.no_grad():
            rewriter.network.gate.bias.fill_(bias)
        text = rewriter.write(["qqq"])[0][0]
        assert text == expected if expected else "qqq" not in text


@pytest.mark.parametrize("kind", ["acg", "hred-qs"])
def test_gradients_are_those_of_small_changes(kind):
    rewriter = made(kind)
    network = rewriter.network.double()
    batch = batch_of(rewriter, ["who wrote qq", "is it"], [["blue zebra"], []])
    book = rewriter.words.numbers["book"]
    given_, wanted = torch.tensor([[START, book], [START, 0]]), torch.tensor([[book, END], [END, 0]])

    def loss():
        return network(**batch, given=given_, wanted=wanted)["loss"]

    loss().backward()
    for name, weights in network.named_parameters():
        flat, gradient = weights.data.view(-1), weights.grad.view(-1)
        place, step = int(gradient.abs().argmax()), 1e-6
        had = flat[place].item()
        values = []
        for sign in (1, -1):
            flat[place] = had + sign * step
            values.append(loss().item())
        flat[place] = had
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(float(gradient[place]), rel=1e-4, abs=1e-8), name


@pytest.mark.parametrize("kind", ["acg", "hred-qs"])
def test_the_loss_is_the_mean_of_the_words_that_are_there(kind):
    rewriter = made(kind)
    batch = batch_of(rewriter, ["who wrote zebra", "is it blue"])
    given_ = torch.tensor([[START, 4, 5], [START, 6, 0]])
    wanted = torch.tensor([[4, 5, END], [6, END, 0]])
    found = rewriter.network(**batch, given=given_, wanted=wanted)["loss"].item()
    kept, state = rewriter.network.begin(batch["source"], batch["lengths"], batch["copies"])
    chances, _ = rewriter.network.chances(kept, state, given_, batch["extra"])
    each = [-math.log(chances[row, at, wanted[row, at]].item()) for row, at in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1))]
    assert found == pytest.approx(sum(each) / 5, rel=1e-5)


@pytest.mark.parametrize("kind", ["acg", "hred-qs"])
def test_company_and_padding_change_nothing(kind):
    rewriter = made(kind)
    before = [["blue zebra", "it"], [], ["who"]]
    texts = ["is", "who wrote a long zebra book", "it blue"]
    together = rewriter.write(texts, before, beams=3)
    for i, text in enumerate(texts):
        assert rewriter.write([text], [before[i]], beams=3)[0] == together[i]


def test_only_the_session_network_reads_what_was_asked_before():
    for kind, differs in (("acg", False), ("hred-qs", True)):
        rewriter = made(kind)
        chances = []
        for before in ([], ["zebra blue"]):
            batch = batch_of(rewriter, ["who"], [before])
            kept, state = rewriter.network.begin(batch["source"], batch["lengths"], batch["copies"])
            chances.append(rewriter.network.chances(kept, state, torch.tensor([[START]]), batch["extra"])[0])
        assert (not torch.allclose(*chances)) is differs


def all_texts(rewriter, text, most):
    """Every text up to a length with its mean log chance of a word, by brute force."""
    batch = batch_of(rewriter, [text])
    kept, state = rewriter.network.begin(batch["source"], batch["lengths"], batch["copies"])
    width = rewriter.words.written + batch["extra"]
    extras = rewriter.words.extras(text.split()) if rewriter.copying else {}
    reads = {number: rewriter.words.read([word])[0] for word, number in extras.items()}
    writable = range(END + 1, width)
    found = []
    for length in range(most + 1):
        for line in itertools.product(writable, repeat=length):
            ended = [*line, END] if length < most else list(line)
            given_ = torch.tensor([[START, *(reads.get(word, word) for word in ended[:-1])]])
            chances, _ = rewriter.network.chances(kept, state, given_, batch["extra"])
            logs = [math.log(float(chances[0, at, word])) for at, word in enumerate(ended)]
            found.append((sum(logs) / len(logs), line))
    return [(value, rewriter.words.text(line, extras)) for value, line in sorted(found, reverse=True)]


@pytest.mark.parametrize("kind", ["acg", "hred-qs"])
def test_enough_beams_find_the_likeliest_texts_of_all(kind):
    sizes = Sizes(5, 6, 7, 0.0, written=2, read=50, most_words=3)
    rewriter = made(kind, sizes, seed=5)
    with torch.inference_mode():
        wanted = all_texts(rewriter, "who zebra", 3)
    found = rewriter.write(["who zebra"], beams=200)[0]
    assert found[:5] == [text for _, text in wanted[:5]]


def test_more_beams_than_texts_leave_none_that_cannot_be():
    rewriter = made("hred-qs", Sizes(5, 6, 7, 0.0, written=1, read=50, most_words=2))
    # One word, up to two of them: nothing, the word, the word twice.
    assert sorted(rewriter.write(["who"], beams=9)[0]) == ["", "book", "book book"]


def test_one_beam_takes_the_likeliest_word_each_time():
    rewriter = made("acg")
    batch = batch_of(rewriter, ["who wrote zebra"])
    with torch.inference_mode():
        kept, state = rewriter.network.begin(batch["source"], batch["lengths"], batch["copies"])
        line, word = [], START
        while len(line) < SMALL.most_words:
            chances, state = rewriter.network.chances(kept, state, torch.tensor([[word]]), batch["extra"])
            chances[..., :END] = 0.0
            word = int(chances[0, 0].argmax())
            if word == END:
                break
            line.append(word)
    assert rewriter.write(["who wrote zebra"]) == [[rewriter.words.text(line, {})]]


ORIGINALS = ["who wrote zanzibar", "is qwerty blue", "when did kalamazoo open", "fast red cars", "who is old"]
WANTED = ["zanzibar book author", "qwerty colour blue", "kalamazoo station open", "red cars", "who old person"]
SIZES = Sizes(16, 32, 24, 0.0, written=20, read=100, most_words=10)
PACE = Schedule(60.0, 5, 1e-2, 1, 0.0, 0.0, "constant", 0, 1)


def pairs_of(originals=ORIGINALS, targets=WANTED):
    queries = [f"q{i}" for i in range(len(originals))]
    return pl.DataFrame({"query_id": queries, "original_text": originals, "text": targets})


def taught(kind, tmp_path, pairs=None, pace=PACE, sizes=SIZES, score=lambda wanted, made: 0.0, **more):
    pairs = pairs_of() if pairs is None else pairs
    return fit_words(kind, pairs, pace, tmp_path, pairs, score, sizes=sizes, device="cpu", **more)


@pytest.mark.parametrize("kind", ["acg", "hred-qs"])
def test_a_handful_of_pairs_is_learned_by_heart(kind, tmp_path):
    def share_right(wanted, made):
        return sum(one == other for one, other in zip(wanted, made, strict=True))

    rewriter = taught(kind, tmp_path, score=share_right)
    assert [lines[0] for lines in rewriter.write(ORIGINALS)] == WANTED
    assert [lines[0] for lines in rewriter.write(ORIGINALS, beams=3)] == WANTED


def test_copying_is_learned_for_words_never_seen(tmp_path):
    names = [f"name{i}" for i in range(40)]
    pairs = pairs_of([f"who wrote {name} please" for name in names], [f"author {name}" for name in names])
    sizes = Sizes(16, 32, 24, 0.0, written=2, read=4, most_words=6)  # no name can be written, or read
    epochs = itertools.count()
    pace = replace(PACE, epochs=20.0, batch_size=8)
    rewriter = taught("acg", tmp_path, pairs, pace, sizes, lambda wanted, made: next(epochs))
    assert rewriter.write(["who wrote xyzzy please"]) == [["author xyzzy"]]


def test_the_best_epoch_is_kept(tmp_path):
    values, seen = iter([0.1, 0.9, 0.5]), []

    def score(wanted, written):
        assert wanted == WANTED
        seen.append(list(written))
        return next(values)

    rewriter = taught("acg", tmp_path, pace=replace(PACE, epochs=3.0, learning_rate=5e-2), score=score)
    assert len({str(lines) for lines in seen}) > 1
    assert [lines[0] for lines in rewriter.write(ORIGINALS)] == seen[1]


def test_vectors_are_taken_and_kept_as_they_are(tmp_path):
    words = ["zanzibar", "blue", "unheard"]
    vectors = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [9.0, 9.0, 9.0]], np.float32)
    rewriter = taught("acg", tmp_path, vectors=(words, vectors), pace=replace(PACE, epochs=2.0))
    assert rewriter.sizes.embedding == 3
    table = rewriter.network.embed.weight
    for word in ("zanzibar", "blue"):
        assert table[rewriter.words.numbers[word]].tolist() == vectors[words.index(word)].tolist()
    with pytest.raises(DataError, match="vectors"):
        taught("acg", tmp_path / "no", vectors=(["ZANZIBAR"], vectors[:1]))
