"""``askew``: the commands, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import os
import sys

import click
import typer

from askew import __version__
from askew.cli import annotate, compare, demo, look, measure
from askew.core.errors import AskewError

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
app.command("demo")(demo.command)
app.command("list")(look.list_command)
app.command("show")(look.show_command)


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Show the version and leave.", is_eager=True),
) -> None:
    if version:
        typer.echo(f"askew {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command. A user's mistake is one message; only a mistake of ours may show a traceback, on request."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:  # noqa: PLR0911 - one line for each way a command can end
    """Run a command and return its exit code."""
    try:
        code = typer.main.get_command(app).main(arguments, prog_name="askew", standalone_mode=False)
    except AskewError as error:
        _say(f"{error}")
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted; what is finished is kept, the same command goes on from there")
        return 130
    except BrokenPipeError:
        # The reader of our output has left (askew ... | head): not an error, and nothing more to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        _say(f"{error.filename or 'a file'}: {error.strerror or error}")
        return 3
    except MemoryError:
        _say("out of memory: measure fewer runs at a time, or annotate the documents first")
        return 1
    except Exception as error:
        if os.environ.get("ASKEW_DEBUG"):
            raise
        _say(
            f"a mistake in askew itself ({type(error).__name__}: {error}); ASKEW_DEBUG=1 shows where, please report it"
        )
        return 70
    return code if isinstance(code, int) else 0


def _say(message: str) -> None:
    typer.echo(f"askew: {message}", err=True)
