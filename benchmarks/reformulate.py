"""Every family of reformulators on real queries: candidates a second, distinct, and what was dropped and why.

``--data`` is a folder with boolq and glove100_60k. Models whose weights cannot be had without network (T5, NLLB) run
with tiny ones of random weights: their rows show that the machinery works and what it costs, not what they would write.
The LLM family talks to a real HTTP server that this program starts; behind it SmolLM2-135M with askew's adapter writes
five queries and puts them into the JSON that a larger model would write itself. Slow methods get fewer queries; the
column says how many. WordNet and Krovetz are left out where they are not installed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from askew.core.errors import AskewError
from askew.rewrite.reformulate import FirstPass, make_filter, make_reformulator, reformulate
from askew.search.retrieve import index as index_documents
from askew.search.retrieve import make_ranker, queries_of

_FAST_LINES = """stem.krovetz stem.lovins stem.paicehusk stem.porter stem.porter2 stem.sstemmer stem.trunc4 stem.trunc5
wordnet thesaurus reduce swap embedding rm3 rocchio relevancefeedback fairfeedback
onfields extract replay"""
FAST = _FAST_LINES.split()
only: set[str] = set()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--slow", type=int, default=500, help="queries for the encoder and language models")
    parser.add_argument("--llm", type=int, default=20, help="queries for the LLM over HTTP")
    parser.add_argument("--only", help="one method only")
    options = parser.parse_args()
    only.update([options.only] if options.only else [])
    glove = options.data / "glove100_60k"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        index_documents(options.data / "boolq" / "docs.tsv", folder / "index")
        first = FirstPass(folder / "index", make_ranker({"ranker": "bm25", "index": str(folder / "index")}))
        queries = queries_of(options.data / "boolq" / "queries.tsv")
        own = {
            "embedding": {"vectors": str(glove / "vectors.f16.npy"), "vocabulary": str(glove / "vocab.txt")},
            "thesaurus": {"file": str(_thesaurus(folder))},
            "replay": {"file": str(_replayed(folder, queries, options.queries))},
        }
        heads = f"{'method':18}{'queries':>8}{'made':>8}{'distinct':>9}{'kept':>8}{'a second':>13}  dropped"
        print(f"boolq, the first queries; filter: rules; models are loaded before the clock starts\n\n{heads}")
        for name in FAST:
            show(name, queries.slice(0, options.queries), own.get(name, {}), first)
        tiny = _tiny_t5(folder)
        show("bertqe", queries.slice(0, options.slow), {}, first)
        show("rewrite", queries.slice(0, options.slow), {"count": 5}, first)
        show("fewshot", queries.slice(0, options.slow // 5), {"count": 5}, first)
        show("docquery", queries.slice(0, options.slow), {"model": tiny, "count": 5}, first, "tiny model")
        settings: dict[str, Any] = {"model": tiny, "back": tiny, "languages": ""}
        show("backtranslate", queries.slice(0, options.slow), settings, first, "tiny model")
        with _server() as address:
            settings = {
                "model": "smollm2",
                "base_url": address,
                "key_variable": "HOME",
                "max_tokens": 100,
                "timeout_s": 120.0,
            }
            show("llm", queries.slice(0, options.llm), settings, first, "SmolLM2 and adapter over HTTP")


def show(name: str, queries: Any, settings: dict[str, Any], first: FirstPass, note: str = "") -> None:
    if only and name not in only:
        return
    try:
        method = make_reformulator({"method": name, **settings})
        reformulate(queries.slice(0, 1), [method], [], first)
        table, (tally,) = reformulate(queries, [method], [make_filter({"filter": "rules"})], first)
    except AskewError as error:
        print(f"{name:18} {error}", flush=True)
        return
    distinct = table.select("query_id", "text").unique().height
    dropped = "; ".join(f"{count:,} {why}" for why, count in tally.rejected.most_common(5)) or "-"
    rate = tally.made / tally.seconds
    shown = f"{name:18}{queries.num_rows:>8,}{tally.made:>8,}{distinct:>9,}{tally.kept:>8,}{rate:>13,.1f}  {dropped}"
    print(shown + (f" [{note}]" if note else ""), flush=True)


def _thesaurus(folder: Path) -> Path:
    path = folder / "thesaurus.tsv"
    path.write_text("city\ttown\nmovie\tfilm\ncar\tautomobile, vehicle\nfootball\tsoccer\nsame\tidentical, equal\n")
    return path


def _replayed(folder: Path, queries: Any, count: int) -> Path:
    path = folder / "replay.tsv"
    rows = zip(queries["query_id"].to_pylist()[:count], queries["text"].to_pylist(), strict=False)
    path.write_text("qid\treformulated_query\n" + "".join(f"{query}\tthe answer to {text}\n" for query, text in rows))
    return path


def _tiny_t5(folder: Path) -> str:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    torch.manual_seed(7)
    words = [
        "<pad>",
        "</s>",
        "<unk>",
        *[
            "is",
            "the",
            "a",
            "of",
            "in",
            "what",
            "are",
            "can",
            "you",
            "city",
            "film",
            "played",
            "first",
            "world",
            "state",
        ],
    ]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=128
    )
    config = T5Config(
        vocab_size=len(words), d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    T5ForConditionalGeneration(config).save_pretrained(folder / "t5")
    fast.save_pretrained(folder / "t5")
    return str(folder / "t5")


class _server:  # noqa: N801 - used as a with statement's word
    """SmolLM2-135M with askew's adapter behind an OpenAI-compatible address."""

    def __enter__(self) -> str:
        from askew.models.generate import SMOLLM, Sampling, load_generator
        from askew.models.prompts import kind_ending, query_prefix
        from askew.rewrite.rewrite import ADAPTER

        writer, one_at_a_time = load_generator(SMOLLM, "causal", ADAPTER), threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                query = asked["messages"][-1]["content"].rpartition("Query: ")[2].partition("\n")[0]
                with one_at_a_time:
                    shown = query_prefix(query) + kind_ending("paraphrase")
                    made = writer.sample(shown, 5, asked.get("seed") or 0, Sampling(32))
                text = json.dumps({"queries": made})
                choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
                body = json.dumps({"choices": [choice], "usage": {}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()


if __name__ == "__main__":
    main()
