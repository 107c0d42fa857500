"""Tiny models with random weights, and rows to train on; the programs of tools can be imported."""

import json
import sys

import pytest
from toy_training import KINDS, TEXTS, TOOLS, WORDS, label_row, rewrites_row

if str(TOOLS) not in sys.path:
    sys.path.insert(0, str(TOOLS))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Networks this small are slower on several threads, by far where other programs run."""
    torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def rows():
    return [rewrites_row(query, texts) for query, texts in TEXTS.items()]


@pytest.fixture(scope="session")
def causal(tmp_path_factory):
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    special = ["<pad>", "</s>", "<unk>", ":", "Query", "original", *KINDS]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate([*special, *WORDS])}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
    )
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(fast), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=128, bos_token_id=1, eos_token_id=1, pad_token_id=0, initializer_range=0.3,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("causal")
    LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory, bert_tokenizer):
    pytest.importorskip("torch", reason="the extra 'neural' is not installed")
    import torch
    from transformers import BertConfig, BertModel

    tokenizer = bert_tokenizer(WORDS, 96)
    torch.manual_seed(4)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=96,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("encoder")
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def made(tmp_path, rows):
    """The folder with our own data, all of the collection web."""
    folder = tmp_path / "made"
    folder.mkdir()
    dev = rewrites_row("big boat", TEXTS["old ship"], split="dev")
    labels = [label_row(row["query"], one["text"], "same") for row in rows for one in row["rewrites"]]
    labels += [label_row(row["query"], "auto that is", "different", 0) for row in rows]
    labels += [label_row("big boat", text, need, split="dev") for text, need in (("boat", "same"), ("car", "partly"))]
    for name, lines in (("queries", [*rows, dev]), ("labels", labels)):
        text = "".join(json.dumps({**one, "collection": "web"}) + "\n" for one in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    groups = [("who is the queen", "written"), ("car of the king", "read:boolq")]
    lines = [json.dumps({"query": query, "label": "n", "source": source}) + "\n" for query, source in groups]
    (folder / "groups.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "plain.txt").write_text("ancient queen\nbig boat\nruler of auto\n", encoding="utf-8")
    return folder
