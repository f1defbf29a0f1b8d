"""How large the report is and how fast it answers: `python -m benchmarks.report [--json]`.

An evaluation of one episode of 10,000 containers, played by two policies, opened in Chromium. Times
are of the wall clock, so other work on the machine makes them longer.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from report.page import write_report
from tests.report.recorded import POLICIES, finished_evaluation

HOVERS = 20
GAP = 600.0
"""Seconds between workflows: about as long as the cluster needs for one."""
FUNCTIONS = 100
"""Of a workflow."""
WIDTH, HEIGHT = 1440, 900
"""Pixels of the window."""

UNITS = {
    "containers": "of the episode",
    "write_s": "seconds to make the report, replaying both recordings",
    "size_mb": "of the file",
    "open_s": "seconds from asking for the page to all charts drawn",
    "hover_ms": "milliseconds from moving the mouse onto a container to its numbers, median",
    "hover_worst_ms": "the longest of them",
}

MIDDLES = """count => {
  const view = views.gantt;
  document.querySelector("#gantt").scrollIntoView();
  const place = document.querySelector("#gantt canvas").getBoundingClientRect();
  const [left, top] = view.origin();
  return view.data("bars")
    .map((bar) => [
      place.x + left + view.scale("x")((bar.begin + bar.end) / 2),
      place.y + top + view.scale("y")((bar.top + bar.bottom) / 2),
    ])
    .filter(([x, y]) => y > 0 && y < innerHeight)
    .filter((_, index, all) => index % Math.ceil(all.length / count) === 0);
}"""


def measure(containers: int) -> dict[str, float]:
    """All figures, by the names in `UNITS`.

    Args:
        containers: of the episode, a multiple of `FUNCTIONS`.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = finished_evaluation(
            Path(scratch) / "run",
            dict(list(POLICIES.items())[:2]),
            episodes=1,
            workflows=containers // FUNCTIONS,
            functions=FUNCTIONS,
            gap=GAP,
        )
        begin = time.perf_counter()
        report = write_report(folder)
        written = time.perf_counter() - begin
        opened, hovers = browse(report)
        return {
            "containers": containers,
            "write_s": written,
            "size_mb": report.stat().st_size / 1e6,
            "open_s": opened,
            "hover_ms": 1e3 * statistics.median(hovers),
            "hover_worst_ms": 1e3 * max(hovers),
        }


def browse(report: Path) -> tuple[float, list[float]]:
    """(seconds to open, seconds of each hover) of a report in Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_default_timeout(0)
        begin = time.perf_counter()
        page.goto(report.as_uri())
        page.wait_for_selector("body[data-drawn]")
        opened = time.perf_counter() - begin
        hovers = [hover(page, *middle) for middle in page.evaluate(MIDDLES, HOVERS)]
        browser.close()
    return opened, hovers


def hover(page: Any, x: float, y: float) -> float:
    """Seconds until the numbers of what is at (x, y) are shown."""
    page.mouse.move(1, 1)
    page.wait_for_selector("#vg-tooltip-element:not(.visible)", state="attached")
    begin = time.perf_counter()
    page.mouse.move(x, y)
    page.wait_for_selector("#vg-tooltip-element.visible")
    return time.perf_counter() - begin


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints, as a table or as one JSON object."""
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--containers", type=int, default=10_000, help="of the episode")
    options = parser.parse_args(arguments)
    if options.containers < FUNCTIONS or options.containers % FUNCTIONS:
        parser.error(f"--containers is {options.containers}, a multiple of {FUNCTIONS} is needed")
    if shutil.which("chromium") is None:
        sys.exit("Chromium is not installed (apt install chromium)")
    figures = measure(options.containers)
    if options.json:
        print(json.dumps(figures))
        return
    table = Table("figure", "value", "what")
    for name, what in UNITS.items():
        table.add_row(name, f"{figures[name]:,.{0 if figures[name] >= 1000 else 2}f}", what)
    Console().print(table)


if __name__ == "__main__":
    main()
