"""Run every program of benchmarks and tools for its help, in this process; print one line for each that fails.

The modules that are no programs are imported by these, or here. A library that is not installed fails no program.
"""

import contextlib
import importlib
import io
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [ROOT / "benchmarks", ROOT / "tools", ROOT / "tools" / "site", ROOT / "tools" / "training"]
OWN = {path.stem for folder in FOLDERS for path in folder.glob("*.py")} | {"askew", "training", "plain"}


def fault(path: Path) -> str | None:
    """Why a program shows no help, or a module cannot be imported; None if it does."""
    out = io.StringIO()
    sys.argv = [str(path), "--help"]
    try:
        if '__name__ == "__main__"' not in path.read_text(encoding="utf-8"):
            importlib.import_module(f"training.{path.stem}" if path.parent.name == "training" else path.stem)
            return None
        with contextlib.redirect_stdout(out):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return None if end.code == 0 and out.getvalue().startswith("usage: ") else f"ended with {end.code}"
    except ModuleNotFoundError as error:
        return f"{error}" if (error.name or "").partition(".")[0] in OWN else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "did its work instead"


if __name__ == "__main__":
    # Behind the standard library, which has a module code, too.
    sys.path += [str(folder) for folder in FOLDERS[:3]]
    programs = [path for folder in FOLDERS for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]
    for program in programs:
        if why := fault(program):
            sys.__stdout__.write(f"{program.relative_to(ROOT)}: {why}\n")
    sys.__stdout__.write(f"{len(programs)} programs\n")
