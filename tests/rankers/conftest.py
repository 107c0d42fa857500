"""Tiny models, built here: where real weights cannot be had offline, the loading code is still the real one."""

import pytest

from askew.testing.contracts import TOY_DOCS
from askew.testing.opensearch_server import OpenSearchServer
from askew.testing.search_server import SearchServer

WORDS = sorted({word.strip(".,;:%’").lower() for text in TOY_DOCS.values() for word in text.split()})


@pytest.fixture
def search_server():
    with SearchServer(TOY_DOCS) as server:
        yield server


@pytest.fixture
def opensearch_server():
    with OpenSearchServer(TOY_DOCS) as server:
        yield server


@pytest.fixture(scope="session")
def tiny_parts(bert_tokenizer):
    """A tokenizer and a configuration of a BERT with two small layers."""
    pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
    from transformers import BertConfig

    fast = bert_tokenizer([*WORDS, "who", "##s"])
    config = BertConfig(
        vocab_size=len(fast), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64,
    )  # fmt: skip
    return fast, config


def _save(tiny_parts, kind, folder, **options):
    import torch
    import transformers

    torch.manual_seed(7)
    tokenizer, config = tiny_parts
    for name, value in options.items():
        setattr(config, name, value)
    model = getattr(transformers, kind)(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tiny_splade(tiny_parts, tmp_path_factory):
    return _save(tiny_parts, "BertForMaskedLM", tmp_path_factory.mktemp("splade"))


@pytest.fixture(scope="session")
def tiny_cross(tiny_parts, tmp_path_factory):
    return _save(tiny_parts, "BertForSequenceClassification", tmp_path_factory.mktemp("cross"), num_labels=1)


@pytest.fixture(scope="session")
def tiny_colbert(tiny_parts, tmp_path_factory):
    from sentence_transformers import MultiVectorEncoder

    plain = _save(tiny_parts, "BertModel", tmp_path_factory.mktemp("plain"))
    folder = tmp_path_factory.mktemp("colbert")
    MultiVectorEncoder(plain, device="cpu").save(str(folder))
    return str(folder)
