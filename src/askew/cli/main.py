"""``askew``: the commands, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any

import typer

from askew import __version__
from askew.cli import (
    annotate,
    bench,
    build,
    compare,
    demo,
    logs,
    look,
    measure,
    reformulate,
    report,
    retrieve,
    serve,
    train,
    train_ranker,
    train_text,
)
from askew.cli.render import say
from askew.core.errors import AskewError

# Some versions of typer use click, others have a click of their own inside: this is the one that is really raised.
_CannotRead: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="askew",
    help="Ask, see how far the answers lean, ask again.\n\n"
    "Measure how search results lean toward a group, with published measures reproduced to the digit, "
    "and compare runs query by query.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("measure")(measure.command)
app.command("compare")(compare.command)
app.command("annotate")(annotate.command)
app.command("index")(retrieve.index_command)
app.command("search")(retrieve.search_command)
app.command("reformulate")(reformulate.reformulate_command)
app.command("classify")(reformulate.classify_command)
app.command("calibrate")(reformulate.calibrate_command)
app.command("plan")(build.plan_command)
app.command("run")(build.run_command)
app.command("publish")(build.publish_command)
app.command("report")(report.report_command)
app.command("verify")(build.verify_command)
app.command("bench")(bench.bench_command)
app.command("serve")(serve.serve_command)
app.command("mcp")(serve.mcp_command)
app.command("negatives")(train_ranker.negatives_command)
app.command("rerank")(train_ranker.rerank_command)
app.command("logs")(logs.command)
train.train_app.command("ranker")(train_ranker.ranker_command)
train.train_app.command("selector")(train_ranker.selector_command)
train.train_app.command("generator")(train_text.generator_command)
train.train_app.command("rewriter")(train_text.rewriter_command)
app.add_typer(train.train_app, name="train")
app.command("demo")(demo.command)
app.command("list")(look.list_command)
app.command("show")(look.show_command)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"askew {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Show the version and leave.", is_eager=True, callback=_version
    ),
) -> None:
    pass


def main() -> None:
    """Run a command. A user's mistake is one message; only a mistake of ours may show a traceback, on request."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A letter that the terminal's encoding lacks is shown by its number rather than being the end of us.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:  # noqa: PLR0911 - one line for each way a command can end
    """Run a command and return its exit code."""
    try:
        return _invoke(arguments)
    except AskewError as error:
        say(f"askew: {error}", err=True)
        return error.exit_code
    except _CannotRead as error:
        return _refuse(error)
    except (KeyboardInterrupt, typer.Abort):
        kept = (
            "; what is finished is kept, the same command goes on from there"
            if arguments[:1] in (["annotate"], ["run"], ["publish"], ["report"], ["demo"])
            else ""
        )
        say(f"askew: interrupted{kept}", err=True)
        return 130
    except OSError as error:
        return _cannot_read_or_write(error)
    except MemoryError:
        say("askew: out of memory: measure fewer runs at a time, or annotate the documents first", err=True)
        return 1
    except Exception as error:
        if os.environ.get("ASKEW_DEBUG"):
            raise
        name = type(error).__name__
        say(
            f"askew: a mistake in askew itself ({name}: {error}); ASKEW_DEBUG=1 shows where, please report it", err=True
        )
        return 70


def _invoke(arguments: list[str]) -> int:
    """Typer's own main would answer Ctrl-C and a closed pipe in its own way; here both come through as they are."""
    command = typer.main.get_command(app)
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
    """A command line that cannot be read."""
    text = error.format_message()
    if text.startswith("Usage:"):  # askew alone: the message is the whole help
        typer.echo(text, err=True)
    else:
        context = getattr(error, "ctx", None)
        say(f"askew: {text} (see {context.command_path if context else 'askew'} --help)", err=True)
    return int(error.exit_code)


def _cannot_read_or_write(error: OSError) -> int:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        try:
            sys.stdout.flush()
        except OSError:
            # What is left in the buffer cannot be written now nor at the end, where Python would complain again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return 0  # the reader of our output has left (askew ... | head), and there is nothing more to say
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "a file or the output"
    say(f"askew: {where}: {error.strerror or error}", err=True)
    return 3
