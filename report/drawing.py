"""What draws charts: the JavaScript of the page, and charts as .svg and .png.

The engine of JavaScript runs in a process of its own. It reserves tens of GB of addresses, however
little it uses, and where it does not get them it ends its process.
"""

import json
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import vl_convert

from env.base.errors import InputError

Spec = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""
VERSION = "6.4"
"""Of Vega-Lite."""
SCALE = 2.0
"""Pixels of a .png for each of the chart."""


class NotDrawn(InputError):
    """The process that draws was ended; the message says by what."""


@cache
def library() -> str:
    """Vega-Embed, Vega-Lite and Vega, or `NotDrawn`."""
    return str(_elsewhere(None))


def draw(specs: Mapping[str, Spec]) -> dict[str, dict[str, bytes]]:
    """Of each chart a file by its ending, or `NotDrawn`; equal charts give equal files."""
    return dict(_elsewhere(specs))


def _elsewhere(specs: Mapping[str, Spec] | None) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=json.dumps(specs).encode(),
        capture_output=True,
        cwd=Path(__file__).parents[1],
    )
    if done.returncode == 0:
        return pickle.loads(done.stdout)
    said = done.stderr.decode(errors="replace")
    if done.returncode > 0:
        raise RuntimeError(said)
    reasons = (line.strip("# ") for line in said.splitlines())
    why = next(filter(None, reasons), signal.Signals(-done.returncode).name)
    raise NotDrawn(f"{why} Drawing takes tens of GB of addresses (ulimit -v).")


if __name__ == "__main__":
    charts = json.load(sys.stdin)
    drawn: Any = {}
    if charts is None:
        drawn = vl_convert.javascript_bundle(vl_version=VERSION)  # type: ignore[call-arg]
    for name, spec in (charts or {}).items():
        svg = vl_convert.vegalite_to_svg(spec, vl_version=VERSION)
        drawn[name] = {"svg": svg.encode(), "png": vl_convert.svg_to_png(svg, scale=SCALE)}
    pickle.dump(drawn, sys.stdout.buffer)
