"""What tests of all folders share. No test is timed: the first use of a compiled loop takes as long as it takes."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# The generator of query logs. At the end, because modules of benchmarks/ have names of the standard library.
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

# What a command prints must not depend on whether its loops were compiled before; subprocesses inherit it.
os.environ.setdefault("ASKEW_COMPILE_NOTE", "off")
# Nor on how long it takes.
os.environ.setdefault("ASKEW_PROGRESS", "off")

settings.register_profile("askew", deadline=None)
settings.load_profile("askew")

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="session")
def bert_tokenizer():
    """Makes a tokenizer of BERT's kind that knows these words and has room for so many tokens."""

    def make(words, room=64):
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
        from transformers import PreTrainedTokenizerFast

        vocabulary = {word: i for i, word in enumerate([*SPECIAL, *words])}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
            mask_token="[MASK]", model_max_length=room,
        )  # fmt: skip

    return make


@pytest.fixture
def all_mentions(monkeypatch):
    """No resolver is installed, so that all mentions count, and no model is loaded."""
    monkeypatch.setattr("askew.measures.resolver.find_spec", lambda name: None)


@pytest.fixture
def snapshot(request):
    """Compares a text with the file that holds its wording; ``UPDATE_SNAPSHOTS=1 pytest TEST`` writes the file."""

    def same(text, name=""):
        folder = Path(__file__).parent / "snapshots" / request.path.stem.removeprefix("test_")
        path = folder / f"{name or request.node.originalname.removeprefix('test_')[:80]}.txt"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return same
