"""The report in a real browser: it opens offline, answers, and fits laptops and phones."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaluation.contest import recording_name
from evaluation.shares import shares_of
from report.charts import pareto
from tests.episodes import written
from tests.recorded_worlds import shared
from tests.report.evaluations import (
    SCENARIOS,
    finished,
    finished_evaluation,
    result,
    run_of,
    write_page,
    write_results,
    write_training,
)

CHROMIUM = shutil.which("chromium")
SECONDS = 60_000
"""Milliseconds that a busy machine may take to answer."""

TENANTS = {"retail": 0.6, "science": 0.3, "media": 0.1}
"""Of workflows 0, 1 and 2."""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt install chromium)"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = finished_evaluation(tmp_path_factory.mktemp("browser") / "run", tenants=TENANTS)
    write_training(folder)
    return write_page(folder)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """J is 1.5 times the number of the scenario under `sjf`, and twice as much under `fcfs`."""
    folder = tmp_path_factory.mktemp("swept") / "run"
    finished(folder, {"fcfs": [2.0, 4.0], "sjf": [1.0, 2.0]}, run=run_of(scenarios=SCENARIOS))
    return write_page(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's own sandbox does not work for root, as whom containers run tests.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def visited(browser: Any, report: Path, **options: Any) -> Iterator[Any]:
    """A report in a window; anything it complains of or asks the network for fails."""
    page = browser.new_page(**options)
    complaints = watch(page)
    page.goto(report.as_uri())
    page.wait_for_selector("body[data-drawn]")
    yield page
    page.close()
    assert complaints == []


WIDE = {"viewport": {"width": 1440, "height": 900}}


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Any]:
    with visited(browser, report, **WIDE) as page:
        yield page


def watch(page: Any) -> list[str]:
    """What a page says on its console or asks for, as it comes."""
    found: list[str] = []
    page.set_default_timeout(SECONDS)
    page.on("console", lambda message: found.append(message.text))
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on(
        "request",
        lambda request: request.url.startswith(("file:", "data:")) or found.append(request.url),
    )
    return found


def move_to_bar(page: Any, workflow: int, function: int, phase: str, panel: int) -> None:
    """Puts the mouse on the middle of a bar of the Gantt chart."""
    x, y = page.evaluate(
        """([workflow, fn, phase, panel]) => {
          const view = views.gantt;
          const bar = view.data("bars").filter((one) => one.phase === phase &&
            parseInt(one.workflow) === workflow && parseInt(one.function) === fn)[panel];
          document.querySelector("#gantt").scrollIntoView();
          const place = document.querySelector("#gantt canvas").getBoundingClientRect();
          const [left, top] = view.origin();
          return [
            place.x + left + view.scale("x")((bar.begin + bar.end) / 2),
            place.y + top + view.scale("y")((bar.top + bar.bottom) / 2),
          ];
        }""",
        [workflow, function, phase, panel],
    )
    page.mouse.move(x, y)


def tooltip(page: Any) -> dict[str, str]:
    page.wait_for_selector("#vg-tooltip-element.visible")
    rows = page.locator("#vg-tooltip-element tr").all()
    cells = [row.locator("td").all_inner_texts() for row in rows]
    return {key.removesuffix(":"): value for key, value in cells}


def test_every_chart_is_drawn(opened: Any) -> None:
    places = opened.locator(".chart").count()
    assert places == 17
    assert opened.locator(".chart canvas").count() == places


def test_hovering_tells_the_numbers_of_the_function(opened: Any) -> None:
    """60e6 operations by 2 threads on free cores of 1e6 operations/s, after 25 s of cold start."""
    opened.select_option("#upper", "learned")
    opened.wait_for_function("document.querySelector('#use-upper-title').innerText === 'learned'")
    opened.wait_for_function("views.gantt.data('titles')[0].text === 'learned'")
    move_to_bar(opened, workflow=0, function=0, phase="running", panel=0)
    assert tooltip(opened) == {
        "workflow": "0 (fork)",
        "function": "0",
        "runs on": "small 0 · N0",
        "phase here": "running",
        "submitted (s)": "0.00",
        "cold start (s)": "25.00",
        "transfer (s)": "0.000",
        "waiting for memory (s)": "0.00",
        "running (s)": "30.00",
        "completed (s)": "55.00",
        "memory given / required (MB)": "3072 / 3072",
        "threads": "2",
        "operations": "60,000,000",
    }
    cut = "[...document.querySelectorAll('#vg-tooltip-element td')].filter((cell) => {}).length"
    assert opened.evaluate(cut.format("cell.scrollWidth > cell.clientWidth + 1")) == 0


def test_shares_are_those_of_the_policies_that_are_chosen(browser: Any, tmp_path: Path) -> None:
    orders = {"stride": "baseline", "fcfs": "baseline"}
    folder = finished_evaluation(tmp_path / "run", orders, 1, tenants=dict.fromkeys("abc", 1.0))
    envs = {order: shared(order) for order in orders}
    for name, env in envs.items():
        written(env, folder / "episodes" / f"{recording_name(name, 0, 0)}.json")
    with visited(browser, write_page(folder)) as page:
        for upper in ("fcfs", "stride"):
            page.select_option("#upper", upper)
            page.wait_for_selector(f"#shares-upper-title >> text=/^{upper}$/")
            told, *rows = page.locator("#shares-upper-rows tr").all_inner_texts()
            found = shares_of(envs[upper])
            assert told.startswith(f"{upper}: Jain's index {found.jain:.3f};")
            assert {row.split()[0] for row in rows} == {"a", "b", "c"}
            lines = page.evaluate("views['shares-upper'].data('shares')")
            last = {(each["tenant"], each["what"]): each["core_seconds"] for each in lines}
            for what in ("received", "entitled"):
                shown = [last[tenant, what] for tenant in found.tenants.index]
                assert shown == pytest.approx(getattr(found, what)[-1], abs=0.001)


def test_choosing_policies(opened: Any) -> None:
    chosen = {"upper": "clairvoyant", "lower": "round_robin"}
    for panel, policy in chosen.items():
        opened.select_option(f"#{panel}", policy)
    titles = "views.gantt.data('titles').map((one) => one.text).join()"
    opened.wait_for_function(f"{titles} === 'clairvoyant,round_robin'")
    for panel, policy in chosen.items():
        assert opened.inner_text(f"#{panel}-key") == policy
        assert opened.inner_text(f"#use-{panel}-title") == policy


def test_zooming(opened: Any) -> None:
    span = "(([begin, end]) => end - begin)(views.gantt.scale('x').domain())"
    whole = opened.evaluate(span)
    first_row_on_top = "views.gantt.scale('y')(0) < views.gantt.scale('y')(1)"
    assert opened.evaluate(first_row_on_top)
    opened.click("text=Zoom in")
    opened.wait_for_function(f"Math.abs({span} - {whole / 2}) < 0.01")
    assert opened.evaluate(first_row_on_top)
    opened.click("text=Whole episode")
    opened.wait_for_function(f"Math.abs({span} - {whole}) < 0.01")
    opened.locator("#gantt canvas").hover()
    opened.keyboard.down("Control")
    opened.mouse.wheel(0, -100)
    opened.wait_for_function(f"{span} < {whole} - 1")
    assert opened.evaluate(first_row_on_top)


def test_idle_time_is_folded_and_unfolded(browser: Any, tmp_path: Path) -> None:
    """Workflows are 5,000 s apart and take some hundred."""
    with visited(
        browser, write_page(finished_evaluation(tmp_path / "run", episodes=1, gap=5000.0)), **WIDE
    ) as page:
        until = "views.gantt.signal('until')"
        whole = page.evaluate(until)
        longest = "Math.max(...views.gantt.data('bars').map((bar) => bar.end - bar.begin))"
        before = page.evaluate(longest)
        page.check("#fold")
        page.wait_for_function(f"{until} < {whole / 5}")
        assert page.evaluate(longest) == pytest.approx(before)  # nothing that runs is folded
        assert "⋯" in page.inner_text("#gantt-times")
        page.uncheck("#fold")
        page.wait_for_function(f"{until} === {whole}")


def test_choosing_a_scenario(browser: Any, swept: Path) -> None:
    with visited(browser, swept, **WIDE) as page:
        assert page.locator(".chart canvas").count() == page.locator(".chart").count() == 11
        page.locator("summary", has_text="All numbers").click()
        best = page.locator("#numbers tbody:visible tr").first
        assert best.inner_text().split()[0] == "sjf" and "\t1.5\t" in best.inner_text()
        page.select_option("#metric", "flow_time")
        page.select_option("#scenario", "keep_alive=lru ratio=0.7")
        page.wait_for_function("views.parts.data('data_0').some((row) => row.seconds === 6)")
        assert "\t6\t" in best.inner_text()
        # What was chosen before holds.
        page.wait_for_function("views.ranking.signal('metric') === 'flow_time'")


def test_choosing_what_is_drawn_of_a_sweep(browser: Any, swept: Path) -> None:
    with visited(browser, swept, **WIDE) as page:
        assert not page.locator("#axis").is_visible()  # there is one alone
        page.select_option("#swept-metric", "J")  # the paired difference comes first
        drawn = "views.sweep.data('data_0').map((row) => row.mean).sort().join()"
        page.wait_for_function(f"{drawn} === '1.5,3,3,6'")
        page.select_option("#panel", "keep_alive=lru")
        page.wait_for_function(f"{drawn} === '12,4.5,6,9'")
        page.locator("#policies label", has_text="fcfs").locator("input").uncheck()
        page.wait_for_function(f"{drawn} === '4.5,6'")
        page.select_option("#swept-metric", "late")
        page.wait_for_function(f"{drawn} === '4.5,6'")
        for chart in ("flow-time", "deadlines", "profiles"):
            page.wait_for_function(f"views['{chart}'].signal('shown').join() === 'sjf'")


@pytest.mark.parametrize("kind", ["report", "swept"])
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_it_fits_and_is_readable(
    browser: Any, request: pytest.FixtureRequest, tmp_path: Path, kind: str, width: int, scheme: str
) -> None:
    with visited(
        browser,
        request.getfixturevalue(kind),
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
    ) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for chart in page.locator(".chart canvas").all():
            assert chart.bounding_box()["width"] <= width
        page.screenshot(path=tmp_path / "page.png", full_page=True)
        back = np.asarray(Image.open(tmp_path / "page.png"))[-1, 0, :3].mean() / 255
        assert back < 0.2 if scheme == "dark" else back > 0.9
        # The button turns it into the other.
        page.click("#theme")
        dark = "document.documentElement.classList.contains('dark')"
        page.wait_for_function(f"{dark} === {str(scheme == 'light').lower()}")


ON_CHART = """() => {
  const view = views["time-against-cost"];
  const found = {text: [], symbol: [], rule: [], width: view.width(), height: view.height()};
  const collect = (item) => {
    if (item.marktype in found && item.role === "mark") {
      for (const {bounds, text} of item.items) {
        if (item.marktype === "text" ? !text : !(bounds.x2 >= bounds.x1)) continue;
        found[item.marktype].push([text ?? "", bounds.x1, bounds.y1, bounds.x2, bounds.y2]);
      }
    } else for (const one of item.items ?? []) collect(one);
  };
  collect(view.scenegraph().root);
  return found;
}"""


@pytest.mark.parametrize("seen", [1280, 390])
def test_names_of_points_cross_nothing(seen: int, browser: Any, tmp_path: Path) -> None:
    """24 rules in a crowd with wide intervals; the window changes its width once all is drawn."""
    draws = np.random.default_rng(0)
    rows = []
    for number in range(24):
        slowdown, rent = draws.uniform(1, 3, 2)
        rows += [
            result(f"rule_number_{number}", episode, 1.0, slowdown=own * slowdown, cost_ratio=rent)
            for episode, own in enumerate((0.9, 1.0, 1.1, 0.9, 1.1))
        ]
    write_results(tmp_path, run_of(episodes=5), rows)
    with visited(browser, write_page(tmp_path), viewport={"width": 900, "height": 900}) as page:
        before = page.evaluate("views['time-against-cost'].width()")
        page.set_viewport_size({"width": seen, "height": 900})
        page.wait_for_function(f"views['time-against-cost'].width() !== {before}")
        page.evaluate("views['time-against-cost'].runAsync().then(() => null)")
        found = page.evaluate(ON_CHART)
    assert len(found["symbol"]) == 24 and len(found["rule"]) >= 24
    names = found["text"]
    assert len(names) >= 5
    front = pareto(np.array([[row["cost_ratio"], row["slowdown"]] for row in rows[1::5]]))
    for place, (name, left, top, right, bottom) in enumerate(names):
        assert left >= 0 and right <= found["width"] and top >= 0 and bottom <= found["height"]
        lines = [] if front[int(name.rpartition("_")[2])] else found["rule"]
        for other, *box in (*names[:place], *found["symbol"], *lines):
            # Half a pixel of a line's own width is no crossing.
            apart = (right - 0.5 <= box[0], left + 0.5 >= box[2], bottom - 0.5 <= box[1])
            assert any(apart) or top + 0.5 >= box[3], (name, other, box)
