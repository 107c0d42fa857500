"""A tiny classifier, built here: where real weights cannot be had offline, the loading code is still the real one."""

import pytest


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
