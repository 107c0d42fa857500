"""Tiny models that write texts."""

import pytest

LINE = (
    "who wrote the book is sky blue red cars run fast old station open author of colour history . : ? Passage Question"
)
WORDS = [*LINE.split(), "The", "same", "question", "in", "other", "words", "u1", "ask"]


def make_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: i for i, word in enumerate(["<pad>", "</s>", "<unk>", *dict.fromkeys(WORDS)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A T5 and a Llama of two small layers."""
    torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
    pytest.importorskip("peft", reason="the extra 'train' is not installed")
    from transformers import LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration

    tokenizer, folders = make_tokenizer(), {}
    torch.manual_seed(7)
    t5 = T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2, dropout_rate=0.0,
        pad_token_id=0, decoder_start_token_id=0, eos_token_id=1,
    )  # fmt: skip
    llama = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=128, bos_token_id=1, eos_token_id=1, pad_token_id=0, initializer_range=0.3,
    )  # fmt: skip
    for kind, model in (("seq2seq", T5ForConditionalGeneration(t5)), ("causal", LlamaForCausalLM(llama))):
        folders[kind] = str(tmp_path_factory.mktemp(kind))
        model.save_pretrained(folders[kind])
        tokenizer.save_pretrained(folders[kind])
    return folders
