"""How large the report is and how fast it answers: `python -m benchmarks.report [--json]`.

An evaluation of one episode of 10,000 containers, played by two policies, opened in Chromium. Other
work on the machine makes the times of the wall clock longer; `_cpu` are processor times of all of
Chromium's processes.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.figures import print_figures
from env.base.pipes import until_reader_leaves
from tests.report.evaluations import POLICIES, finished_evaluation, write_page

HOVERS = 20
PATIENCE = 300_000
"""Milliseconds after which a page that does not answer is given up."""
GAP = 1000.0
"""Seconds between workflows: as long as the busiest NUMA node needs for one."""
FUNCTIONS = 100
"""Of a workflow."""
WIDTH, HEIGHT = 1440, 900
"""Pixels of the window."""

UNITS = {
    "containers": "of the episode",
    "write_s": "seconds to make the report from the results, replaying both recordings",
    "size_mb": "of the file",
    "open_s": "seconds from asking for the page to all charts drawn",
    "open_cpu_s": "the same, processor time",
    "hover_ms": "milliseconds from moving the mouse onto a container to its numbers, median",
    "hover_worst_ms": "the longest of them",
    "hover_cpu_ms": "mean of them, processor time",
}

# A container is a pixel wide in the whole of such an episode: nobody looks at one before zooming.
ZOOM = """async parts => {
  const view = views.gantt;
  const first = view.data("edges")[0].row;
  view.signal("zoom_begin", [0, view.signal("until") / parts]);
  view.signal("zoom_top", [first, first + view.signal("rows") / parts]);
  await view.runAsync();
}"""
PARTS = 30
"""Of the time and of the rows: the first of them is looked at, below the policy's name."""
MIDDLES = """count => {
  const view = views.gantt;
  document.querySelector("#gantt").scrollIntoView();
  const place = document.querySelector("#gantt canvas").getBoundingClientRect();
  const [left, top] = view.origin();
  const [x, y] = [view.scale("x"), view.scale("y")];
  const middles = view.data("bars")
    .filter((bar) => bar.phase === "running" && x(bar.end) - x(bar.begin) > 3)
    .map((bar) => [(x(bar.begin) + x(bar.end)) / 2, (y(bar.top) + y(bar.bottom)) / 2])
    .filter(([across, down]) => across < view.width() && down < view.height())
    .map(([across, down]) => [place.x + left + across, place.y + top + down])
    .filter(([, down]) => down < innerHeight);
  return middles.filter((_, index) => index % Math.ceil(middles.length / count) === 0);
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
        report = write_page(folder)
        figures = {
            "containers": containers,
            "write_s": time.perf_counter() - begin,
            "size_mb": report.stat().st_size / 1e6,
        }
        return figures | browse(report)


def browse(report: Path) -> dict[str, float]:
    """The figures of a report in Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_default_timeout(PATIENCE)
        begin, begin_cpu = time.perf_counter(), chromium_seconds()
        page.goto(report.as_uri())
        page.wait_for_selector("body[data-drawn]")
        opened, opened_cpu = time.perf_counter() - begin, chromium_seconds() - begin_cpu
        page.evaluate(ZOOM, PARTS)
        middles = page.evaluate(MIDDLES, HOVERS)
        begin_cpu = chromium_seconds()
        hovers = [hover(page, *middle) for middle in middles]
        hovers_cpu = chromium_seconds() - begin_cpu
        browser.close()
    return {
        "open_s": opened,
        "open_cpu_s": opened_cpu,
        "hover_ms": 1e3 * statistics.median(hovers),
        "hover_worst_ms": 1e3 * max(hovers),
        "hover_cpu_ms": 1e3 * hovers_cpu / len(hovers),
    }


def hover(page: Any, x: float, y: float) -> float:
    """Seconds until the numbers of what is at (x, y) are shown."""
    page.mouse.move(1, 1)
    page.wait_for_selector("#vg-tooltip-element.visible", state="hidden")
    begin = time.perf_counter()
    page.mouse.move(x, y)
    page.wait_for_selector("#vg-tooltip-element.visible")
    return time.perf_counter() - begin


def chromium_seconds() -> float:
    """Processor seconds of the processes below this one: Chromium's and its driver's."""
    used = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return sum(times.user + times.system for times in used)


@until_reader_leaves()
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
    print_figures(figures, UNITS, options.json)


if __name__ == "__main__":
    main()
