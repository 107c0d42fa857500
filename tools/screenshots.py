"""Take a screenshot of every page of the explorer, at two widths and in both themes, for docs/screenshots.

``python tools/screenshots.py [FOLDER [PAGE ...]]`` needs playwright, chromium (or its path in ASKEW_CHROMIUM), Pillow.
It starts ``askew serve`` on the demo, with the tables of a small synthetic log and an audit of a search function over
the demo, in a separate cache. If pages are named, it takes only screenshots of these.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

SHOTS = Path(__file__).resolve().parent.parent / "docs" / "screenshots"
PAGES = {
    "start": "",
    "search": "?q=how+to+become+a+software+engineer",
    "search-unjudged": "?q=women+nursing+school",
    "compare": "compare?q=how+to+become+a+software+engineer&to=steps+a+person+can+take+to+become+a+software+engineer",
    "dataset": "pairs",
    "dataset-selected": "pairs?subset=all&sort=-lean&lean_min=0.05&lean_max=0.25&effectiveness_min=-0.25",
    "runs": "runs?run=demo:bm25.run&run=demo:minilm.run&measure=ARaB(tf)%4010",
    "audit": "audit",
    "logs": "logs",
    "plan": "plan",
    "error": "pairs?subset=nothing",
}
SIZES = [(width, theme) for width in (1280, 390) for theme in ("light", "dark")]
# A screenshot is cut at this height. Below are only more rows of the same kind.
HIGHEST = 1700
COLORS = 160


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a service with data for all pages."""
    askew = str(Path(sys.executable).with_name("askew"))
    given = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    subprocess.run([askew, "logs", "--demo", "--out", str(folder / "logs")], env=given, check=True, capture_output=True)
    engine = f"callable:{Path(__file__).with_name('demo_search.py')}:find"
    audit = [askew, "audit", engine, "--queries", "demo", "--method", "reduce"]
    audit += ["--set", "equivalence.model=light", "--keep-queries", "--out", str(folder / "audit")]
    subprocess.run(audit, env=given, check=True, capture_output=True)
    command = [askew, "serve", "--port", "0", "--logs", str(folder / "logs"), "--audit", str(folder / "audit")]
    command += ["--rate", "10000"]
    process = subprocess.Popen(command, env=given, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip().removeprefix("askew: ")
        # The pairs of the demo are built at the first request.
        urllib.request.urlopen(url + "pairs").read()
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def take(browser: Any, url: str, path: str, width: int, theme: str, file: Path) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    page = context.new_page()
    # Compiling at the first use and loading a language model take a while.
    page.set_default_timeout(300_000)
    page.goto(url + path)
    if page.locator("[data-load]").count():
        page.wait_for_selector(".reformulations")
    high = min(page.evaluate("document.documentElement.scrollHeight"), HIGHEST)
    page.set_viewport_size({"width": width, "height": high})
    page.screenshot(path=file)
    context.close()
    smaller(Image.open(file).convert("RGB")).save(file, optimize=True)


def smaller(picture: Image.Image) -> Image.Image:
    """The picture with its most common colors only. Every other color is replaced by the nearest of these."""
    pixels = np.asarray(picture).reshape(-1, 3)
    colours, places, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    # A bright color has a higher weight than a gray: it is rare, and distinguishes elements of the page.
    weights = counts * (1 + np.ptp(colours.astype(np.int64), axis=1))
    kept = colours[np.argsort(-weights, kind="stable")[:COLORS]].astype(np.int64)
    nearest = np.argmin(((colours[:, None, :] - kept[None, :, :]) ** 2).sum(axis=2), axis=1)
    made = Image.fromarray(nearest[places.ravel()].reshape(picture.height, picture.width).astype(np.uint8), "P")
    made.putpalette(kept.astype(np.uint8).tobytes())
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=SHOTS, help="where the screenshots are written")
    parser.add_argument("pages", nargs="*", help="all pages by default")
    given = parser.parse_args()
    target, wanted = given.folder, given.pages or list(PAGES)
    target.mkdir(parents=True, exist_ok=True)
    chromium = os.environ.get("ASKEW_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in wanted:
            for width, theme in SIZES:
                take(browser, url, PAGES[name], width, theme, target / f"{name}-{width}-{theme}.png")
        browser.close()
    files = sorted(target.glob("*.png"))
    print(f"{len(files)} screenshots, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
