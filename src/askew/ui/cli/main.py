"""``askew``: register the commands, and turn errors into a one-line message and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import errno
import io
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from askew.core.address import Address, without_secrets
from askew.core.errors import AskewError, DataError
from askew.core.version import __version__
from askew.ui.cli import (
    annotate,
    audit,
    bench,
    build,
    check,
    compare,
    logs,
    measure,
    reformulate,
    retrieve,
    sensitivity,
    serve,
    show,
    train,
)
from askew.ui.cli.render import as_options, know_command, say
from askew.ui.cli.settings_help import WITH_DEFAULTS, WithDefaults

# Libraries report a full disk in different ways, often without a path.
_FULL = (errno.ENOSPC, errno.EDQUOT)
_SAID = ("No space left on device", "Disk quota exceeded")
_WRITTEN = ("--out", "--html", "--store", "--copy")
_LITTLE = 1 << 20


def _full_disk(error: BaseException, arguments: Sequence[str]) -> str:
    """Return which disk is full: the output, the file of the error, or a place of the command without free space."""
    if _is_output_spent():
        return "the output"
    if isinstance(named := getattr(error, "filename", None), str):
        return named
    words = [part for word in arguments for part in word.split("=", 1)]
    written = [value for option, value in pairwise(words) if option in _WRITTEN]
    places = [*written, ".", tempfile.gettempdir()]
    for place in places:
        there = next(folder for folder in (Path(place), *Path(place).absolute().parents) if folder.exists())
        with contextlib.suppress(OSError):
            if shutil.disk_usage(there).free < _LITTLE:
                return place
    return places[0]


# Some versions of typer use click, others include a copy of it. This is the class that is really raised.
_CannotRead: Any = typer.BadParameter.__mro__[2]
_HOLDS_ADDRESS = (
    "ASKEW_STORE", "OPENAI_BASE_URL", "RAY_ADDRESS", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy",
    "https_proxy", "all_proxy",
)  # fmt: skip


class _Commands(TyperGroup):
    """Lists ``train``, which has commands of its own, before the first command that uses what it trains."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = [name for name in super().list_commands(ctx) if name != "train"]
        names.insert(names.index("negatives"), "train")
        return names


app = typer.Typer(
    name="askew",
    cls=_Commands,
    help="Measure demographic bias (lean) in search results, and reduce it.\n\n"
    "askew finds query reformulations whose results lean less than those of the original query and are as relevant. "
    "askew publishes these reformulations as datasets. It also trains and compares mitigation methods, and analyzes "
    "how people add the name of a group to their queries.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
# The commands in the order in which they are typically used, each with a help text of one line.
_COMMANDS: tuple[tuple[str, Callable[..., None], str], ...] = (
    ("demo", build.demo_command, "Start here: run all steps on a small embedded collection."),
    ("audit", audit.command, "Audit a live engine: measure how far its results lean."),
    ("measure", measure.command, "Measure runs: bias (lean) and effectiveness."),
    ("compare", compare.command, "Compare two runs query by query, with significance tests."),
    ("sensitivity", sensitivity.command, "Test if the order of runs by lean depends on the word list."),
    ("check", check.command, "Check a collection: its judgements and its mentions of groups."),
    ("annotate", annotate.command, "Count group terms in documents once, for many runs."),
    ("index", retrieve.index_command, "Index documents for a ranker."),
    ("search", retrieve.search_command, "Retrieve documents for every query and write a run."),
    ("reformulate", reformulate.reformulate_command, "Reformulate each query, by one method or many."),
    ("classify", reformulate.classify_command, "Classify which group each query asks about, if any."),
    ("calibrate", reformulate.calibrate_command, "Choose a similarity threshold from labeled pairs of queries."),
    ("plan", build.plan_command, "Show the steps of a recipe and which steps are finished."),
    ("run", build.run_command, "Run a recipe: from queries to chosen reformulations."),
    ("report", build.report_command, "Write tables and figures of a build as one HTML page."),
    ("publish", build.publish_command, "Write queries and their reformulations as a dataset."),
    ("verify", build.verify_command, "Check a dataset, a store, an index or a report."),
    ("bench", bench.bench_command, "Compare methods that reduce the lean of search results."),
    ("negatives", train.negatives_command, "Sample training negatives, some of them documents that lean."),
    ("rerank", train.rerank_command, "Rerank the documents of a run."),
    ("logs", logs.command, "Analyze in a query log how people add group names to queries."),
    ("serve", serve.serve_command, "Serve a website to explore results, and a REST service."),
    ("mcp", serve.mcp_command, "Offer search and measures as tools for a language model."),
    ("models", show.models_command, "List the models that askew ships, or print a model's card."),
    ("list", show.list_command, "List measures, rankers, lexicons and other plugins."),
    ("show", show.show_command, "Show one measure, lexicon, preset or plugin in full."),
)
_TRAINED: tuple[tuple[str, Callable[..., None], str], ...] = (
    ("classifier", train.classifier_command, "Train a classifier that predicts which group a query asks about."),
    ("adapter", train.adapter_command, "Train a relevance model without gender preference (GrepBiasIR)."),
    ("ranker", train.ranker_command, "Train a cross-encoder to prefer documents that lean less."),
    ("selector", train.selector_command, "Train a model that selects a reformulation of a query."),
    ("generator", train.generator_command, "Train a model that reads a passage and writes a query for it."),
    ("rewriter", train.rewriter_command, "Train a model that rewrites queries to be more effective."),
)
# If one of these commands is interrupted, its finished steps are kept, and the same command resumes after them.
_RESUMED = (["annotate"], ["run"], ["publish"], ["report"], ["demo"], ["audit"])
for _own, _commands in ((app, _COMMANDS), (train.train_app, _TRAINED)):
    for _name, _command, _about in _commands:
        _own.command(_name, short_help=_about, cls=WithDefaults if _name in WITH_DEFAULTS else None)(_command)
app.add_typer(train.train_app, name="train", short_help="Train a model and measure it on held-out data.")


def _version(wanted: bool) -> None:
    if wanted:
        say(f"askew {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", is_eager=True, callback=_version
    ),
) -> None:
    pass


_INTERRUPTED = (128 + signal.SIGTERM, 128 + signal.SIGINT)


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM: end as after Ctrl-C, with another exit code."""


# Signals that were received. A library that waits in native code may turn Terminated into a KeyboardInterrupt.
_received: set[int] = set()
# Some tools send a signal twice, to the process and to its group. Within these seconds both are one signal.
_SAME_SIGNAL = 0.5


def _stop(number: int, _: FrameType | None) -> None:
    if not _received:
        _received.add(number)
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def _heed(signals: int) -> None:
    """Read the numbers of signals from a pipe: the second signal ends the process at once, whatever it waits for.

    Python's own handler runs in the main thread only, which may hang in foreign code.
    """
    first = None
    while number := int.from_bytes(os.read(signals, 1), "big"):
        now = time.monotonic()
        if first is not None and now - first > _SAME_SIGNAL:
            os.write(2, f"askew: {_stopped(number == signal.SIGTERM, sys.argv[1:])}\n".encode())
            os._exit(128 + number)
        if first is None and signal.getsignal(number) is _stop:
            # Polars makes the system restart an interrupted wait, so that the handler would never run.
            signal.siginterrupt(number, True)
            signal.pthread_kill(threading.main_thread().ident or 0, number)
        first = first or now


def _stopped(terminated: bool, arguments: Sequence[str]) -> str:
    kept = "; finished work is kept, and the same command resumes from there" if arguments[:1] in _RESUMED else ""
    return f"{'stopped by SIGTERM' if terminated else 'interrupted'}{kept}"


def main() -> None:
    """Run a command. A user error prints one message. An internal error prints a traceback on request."""
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_heed, args=(reading,), daemon=True).start()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Print a character that the terminal's encoding lacks as an escape instead of failing.
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    if code in _INTERRUPTED:
        # End without the shutdown of the interpreter: native threads may still be running, and a library that destroys
        # them during the shutdown would abort the process.
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:  # noqa: PLR0911 - one line for each way a command can end
    """Run a command and return its exit code."""
    # Register the secrets of all arguments and environment variables, so that no output shows them.
    for one in (*arguments, *(os.environ.get(name, "") for name in _HOLDS_ADDRESS)):
        for text in (one, one.partition("=")[2]):
            Address(text.strip("\"'"))
    try:
        return _unless_full(arguments)
    except AskewError as error:
        say(f"askew: {as_options(error)}", err=True)
        return error.exit_code
    except _CannotRead as error:
        return _refuse(error)
    except (KeyboardInterrupt, typer.Abort) as error:
        stopped = isinstance(error, Terminated) or signal.SIGTERM in _received
        say(f"askew: {_stopped(stopped, arguments)}", err=True)
        return 128 + (signal.SIGTERM if stopped else signal.SIGINT)
    except OSError as error:
        return _cannot_read_or_write(error)
    except MemoryError:
        say("askew: out of memory: measure fewer runs at a time, or run 'askew annotate' first", err=True)
        return 1
    except Exception as error:
        if os.environ.get("ASKEW_DEBUG"):
            typer.echo(without_secrets(traceback.format_exc()), err=True, nl=False)
        # The bytes of a word that is not UTF-8 are surrogates.
        strange = next((word for word in arguments if any("\ud800" <= char <= "\udfff" for char in word)), None)
        if strange is not None and isinstance(error, UnicodeEncodeError | TypeError):
            # Arrow and JSON cannot write a name that is not UTF-8, and their error would not help a user.
            say(f"askew: {strange}: the name is not valid UTF-8, which this command requires; rename it", err=True)
            return 3
        what = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
        say(f"askew: internal error ({what}); please report it; ASKEW_DEBUG=1 prints a traceback", err=True)
        return 70


def _unless_full(arguments: list[str]) -> int:
    """Run a command, and turn any error about a full disk into one message."""
    try:
        return _invoke(arguments)
    except Exception as error:
        is_full = getattr(error, "errno", None) in _FULL or any(said in str(error) for said in _SAID)
        if not is_full or os.environ.get("ASKEW_DEBUG"):
            raise
        raise DataError(
            f"{_full_disk(error, arguments)}: no space left on the disk; free some and run the same command again, or "
            "give another folder with --out or --store. Incomplete files are never used"
        ) from None


def _invoke(arguments: list[str]) -> int:
    """Run a command without Typer's main, which would handle Ctrl-C and a closed pipe itself."""
    command = typer.main.get_command(app)
    know_command(command, arguments)
    code = 0
    try:
        with command.make_context("askew", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as left:
        code = left.exit_code
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _refuse(error: Any) -> int:
    """Report a command line that cannot be parsed, and return the exit code."""
    text = error.format_message()
    if text.startswith("Usage:"):  # askew alone: the message is the whole help
        typer.echo(text, err=True)
    else:
        context = getattr(error, "ctx", None)
        say(f"askew: {text} (see {context.command_path if context else 'askew'} --help)", err=True)
    return int(error.exit_code)


def _is_output_spent() -> bool:
    """Whether stdout cannot be written any more. If so, replace it with the null device."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        try:
            sys.stdout.flush()
        except OSError:
            # The buffer cannot be written, and Python would report that again when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return True
    return False


def _cannot_read_or_write(error: OSError) -> int:
    _is_output_spent()
    if isinstance(error, BrokenPipeError):
        return 0  # the reader closed the pipe (askew ... | head), so nothing more is printed
    if isinstance(error.filename, str | bytes):
        say(f"askew: {os.fsdecode(error.filename)}: {error.strerror or error}", err=True)
    else:
        say(f"askew: a file or the output cannot be read or written: {error.strerror or error}", err=True)
    return 3
