"""Tiny models that write texts, built here: the loading code is the real one."""

import pytest

WORDS_LINE = "nurse station railway brother history who is she he a the good was his of ward hospital line old brick"
WORDS = WORDS_LINE.split()


@pytest.fixture(scope="session")
def tiny_tokenizer():
    pytest.importorskip("transformers", reason="the extra 'lm' is not installed")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "</s>", "<unk>", "fra_Latn", "eng_Latn"]
    vocabulary = {word: i for i, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
    )


@pytest.fixture(scope="session")
def tiny_t5(tiny_tokenizer, tmp_path_factory):
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(7)
    config = T5Config(
        vocab_size=len(tiny_tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=2, pad_token_id=0,
        decoder_start_token_id=0, eos_token_id=1,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("t5")
    T5ForConditionalGeneration(config).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tiny_causal(tiny_tokenizer, tmp_path_factory):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(tiny_tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("causal")
    LlamaForCausalLM(config).save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tiny_classifier(tmp_path_factory, bert_tokenizer):
    """A BERT of two small layers with three labels; its weights are random but fixed."""
    pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    words = ["is", "she", "a", "good", "nurse", "who", "was", "his", "brother", "he", "and"]
    fast = bert_tokenizer(words)
    config = BertConfig(
        vocab_size=len(fast), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, id2label={0: "neutral", 1: "female", 2: "male"},
        label2id={"neutral": 0, "female": 1, "male": 2}, initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(7)
    folder = tmp_path_factory.mktemp("classifier")
    BertForSequenceClassification(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
