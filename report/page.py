"""report.html: everything an evaluation found on one page that opens without a network.

Reads nothing but the files of a finished evaluation; charts.py says what is drawn, template/ holds
the page around it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from omegaconf import OmegaConf

from env.base.files import parse_json, read_bytes, written_whole
from env.score.metrics import Metric
from evaluation.contest import all_metrics, recording_name
from evaluation.results import EPISODES, read_results, read_run
from evaluation.statistics import LARGEST_RATIO, Estimate, performance_profiles
from report import charts, episode_charts, palette, tenants
from report.summary import RANKED_BY, number, spread, values_of
from report.timeline import PHASES, Timeline, mean_over, read_timeline
from report.training_curve import TRAINING, read_training
from report.vega import Spec

TEMPLATE = Path(__file__).parent / "template"
TIME_BINS = 150
"""Columns of a chart of utilisation: about two pixels each on a phone."""
PROFILE_RATIOS = np.linspace(1.0, LARGEST_RATIO, 121)
"""At which performance profiles are drawn."""


@dataclass(frozen=True)
class Evaluation:
    """A finished evaluation, read from its folder.

    Attributes:
        run: run.json.
        policies: a row a policy of summary.json, lowest J first: policy, kind, metrics, against.
        measure: the policy that all are compared with.
        pairs: all pairs of policies: policy, other, against; the better policy first.
        results: a row a policy, seed and episode.
    """

    run: dict[str, Any]
    policies: list[dict[str, Any]]
    measure: str
    pairs: list[dict[str, Any]]
    results: pd.DataFrame

    @property
    def kinds(self) -> dict[str, str]:
        """What each policy is, best policy first."""
        return {row["policy"]: row["kind"] for row in self.policies}

    @property
    def metrics(self) -> list[Metric[Any]]:
        """Those that have a number in the summary."""
        known = self.policies[0]["metrics"]
        return [
            metric
            for metric in all_metrics().values()
            if metric.name in known and known[metric.name]["mean"]["value"] is not None
        ]

    def rows(self, *metrics: str) -> pd.DataFrame:
        """A row a policy: policy, label, kind; of each metric `J`, `J_low` and `J_high`."""
        return pd.DataFrame(
            {
                "policy": row["policy"],
                "label": charts.wrapped(row["policy"]),
                "kind": row["kind"],
                **{
                    f"{metric}{end}": row["metrics"][metric]["mean"][part]
                    for metric in metrics
                    for end, part in (("", "value"), ("_low", "ci_low"), ("_high", "ci_high"))
                },
            }
            for row in self.policies
        )


def write_report(folder: Path) -> Path:
    """Makes `report.html` of a finished evaluation.

    Args:
        folder: with run.json, summary.json and results.parquet, and, where they are, recorded
            episodes in episodes/ and metrics.csv of the learned policy's training.

    Raises:
        InputError: one line with the file and what is wrong with it.
    """
    evaluation = _read(folder)
    most = 1_000_000 * evaluation.run["config"]["report"]["episodes_mb"]
    label_of = tenants.labels(evaluation.run["config"]["workload"].get("tenants", {}))
    flow_times: dict[str, list[np.ndarray]] = {policy: [] for policy in evaluation.kinds}
    served: dict[str, list[str]] = {policy: [] for policy in evaluation.kinds}
    embedded: list[dict[str, Any]] = []
    size = recorded = 0
    for policy, episode, path in _recordings(folder, evaluation):
        recorded += 1
        timeline = read_timeline(path)
        flow_times[policy].append(timeline.flow_times)
        served[policy] += timeline.tenants
        if size < most:
            data = _json(episode_data(timeline, label_of))
            size += len(data)
            embedded.append({"policy": policy, "episode": episode, "data": data})
    pooled = {policy: np.concatenate(times) for policy, times in flow_times.items() if times}
    drawn = _charts(evaluation, pooled, bool(embedded))
    colours = tenants.colours(label_of)
    if label_of and pooled:
        means = tenants.mean_flow_times(pooled, served, label_of)
        rows = evaluation.rows().merge(means, on="policy")
        drawn["tenant-flow-time"] = charts.tenant_flow_time(rows, colours)
    if label_of and embedded:
        drawn["tenants-upper"] = drawn["tenants-lower"] = episode_charts.tenants(colours)
    return render(
        folder,
        "page.html",
        evaluation.run,
        drawn,
        {"heights": palette.PHASE_HEIGHTS, "colours": len(palette.SERIES)},
        kinds=evaluation.kinds,
        policies=evaluation.policies,
        measure=evaluation.measure,
        duels=duels(evaluation.pairs, 1 - evaluation.run["config"]["statistics"]["confidence"]),
        metrics=evaluation.metrics,
        shown=lambda estimate: spread(Estimate(**estimate)),
        lines=charts.styles(list(evaluation.kinds)),
        phases=palette.PHASES,
        episodes=embedded,
        left_out=recorded - len(embedded),
        kind_colours=palette.KINDS,
        tenant_colours=colours,
        panel_colours=palette.SERIES[:2],
    )


def render(
    folder: Path,
    template: str,
    run: Mapping[str, Any],
    specs: Mapping[str, Spec],
    settings: Mapping[str, Any],
    **shown: Any,
) -> Path:
    """Writes `report.html`, with the learning curve where the folder has metrics.csv of a training.

    Args:
        folder: of the evaluation.
        template: of the page, in template/.
        run: run.json.
        specs: of the charts, by the ids of their places on the page.
        settings: what else the page's script needs.
        shown: what else the template needs.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE), autoescape=True, undefined=StrictUndefined
    )
    training = read_training(folder / TRAINING)
    if training is not None and len(training):
        specs = {**specs, "learning": charts.learning_curve(training)}
    text = environment.get_template(template).render(
        run=run,
        config=OmegaConf.to_yaml(OmegaConf.create(run["config"])),
        charts=specs,
        settings=_json({"specs": specs, **settings}),
        library=Markup(_library()),
        **shown,
    )
    path = folder / "report.html"
    with written_whole(path) as temporary:
        temporary.write_text(text)
    return path


@dataclass(frozen=True)
class Duel:
    """A policy against another one, as the page shows it.

    Attributes:
        difference: mean paired difference of J.
        numbers: the same with its interval, p and P(better).
        clear: whether chance is ruled out.
    """

    difference: str
    numbers: str
    clear: bool


def duels(pairs: Iterable[Mapping[str, Any]], level: float) -> dict[tuple[str, str], Duel]:
    """Every policy against every other one, from summary.json, where each pair is there once.

    Args:
        pairs: of summary.json.
        level: corrected p-values below it rule out chance.
    """
    found = {}
    for pair in pairs:
        policy, other, against = pair["policy"], pair["other"], pair["against"]
        one = Estimate(**against["difference"])
        two = Estimate(0.0 - one.value, 0.0 - one.ci_high, 0.0 - one.ci_low)  # not -0.0
        share, p = against["probability"]["value"], against["p_holm"]
        for key, estimate, better in (
            ((policy, other), one, share),
            ((other, policy), two, 1 - share),
        ):
            found[key] = Duel(
                number(estimate.value, "+"),
                f"{spread(estimate, '+')}, p {p:.2g}, P(better) {better:.2f}",
                p < level,
            )
    return found


def episode_data(timeline: Timeline, label_of: Mapping[str, str]) -> dict[str, Any]:
    """What the page needs of an episode, as columns: numbers by container, node, tenant and time.

    Times are rounded to milliseconds, utilisation to whole percent, that by tenants to hundredths.

    Args:
        timeline: of the episode.
        label_of: what charts call its tenants.
    """
    containers = timeline.containers
    columns = {
        name: containers[name].tolist()
        for name in (
            "wf_id",
            "fn_id",
            "node",
            "lane",
            "computation",
            "memory_req",
            "memory_alloc",
            "parallelism",
        )
    }
    columns["submission_time"] = containers["submission_time"].round(3).tolist()
    for phase in PHASES:
        seconds = containers[phase.end] - containers[phase.begin]
        columns[phase.name] = seconds.round(3).tolist()
    edges = np.linspace(0.0, timeline.end, TIME_BINS + 1)
    times, waiting = timeline.queue()
    return {
        "end": timeline.end,
        "containers": columns,
        "nodes": [
            {
                "name": f"{node.server} · N{node.node_id}",
                "first": node.node_id == 0,
                "lanes": node.lanes,
                "cpu": percent_over(node.times, node.cpu, edges),
                "memory": percent_over(node.times, node.memory, edges),
            }
            for node in timeline.nodes
        ],
        # Pairs, since the keys of objects do not stay in order where they are numbers.
        "tenants": [
            [label, (100 * share).round(2).tolist()]
            for label, share in tenants.capacity_used(timeline, label_of, edges).items()
        ],
        "edges": edges.round(3).tolist(),
        "queue": {"time": times.round(3).tolist(), "waiting": waiting.tolist()},
    }


def percent_over(times: np.ndarray, values: np.ndarray, edges: np.ndarray) -> list[int]:
    """`mean_over` in whole percent."""
    return (100 * mean_over(times, values, edges)).round().astype(int).tolist()


def _read(folder: Path) -> Evaluation:
    file = folder / "summary.json"
    summary = parse_json(read_bytes(file, inside=folder), str(file))
    return Evaluation(
        run=read_run(folder, "report"),
        policies=summary["policies"],
        measure=summary["measure"],
        pairs=summary["pairs"],
        results=read_results(folder),
    )


def _recordings(folder: Path, evaluation: Evaluation) -> Iterator[tuple[str, str, Path]]:
    """(policy, what the page calls the episode, file): by episode, best policy first."""
    played = (
        evaluation.results[["seed", "episode"]].drop_duplicates().sort_values(["seed", "episode"])
    )
    for seed, episode in played.itertuples(index=False):
        for policy in evaluation.kinds:
            path = folder / EPISODES / f"{recording_name(policy, seed, episode)}.json"
            if path.is_file():
                yield policy, f"{episode} of seed {seed}", path


def _charts(
    evaluation: Evaluation, flow_times: Mapping[str, np.ndarray], episodes: bool
) -> dict[str, Spec]:
    """All charts, by the id of their place on the page."""
    heading = {metric.name: metric.heading for metric in evaluation.metrics}
    cold_starts = evaluation.results[["policy", "cold_starts"]]
    drawn = {
        "ranking": charts.ranking(_ranked(evaluation)),
        "time-against-cost": charts.time_against(
            "cost_ratio", evaluation.rows("slowdown", "cost_ratio"), heading
        ),
        "cold-starts": charts.cold_starts(
            evaluation.rows().merge(cold_starts, on="policy"), heading["cold_starts"]
        ),
        "profiles": charts.profiles(_profiles(evaluation), PROFILE_RATIOS),
    }
    if "carbon" in heading:
        emitted = evaluation.rows("slowdown", "carbon")
        if (emitted["carbon"] > 0).all():
            drawn["time-against-carbon"] = charts.time_against("carbon", emitted, heading)
    if len(evaluation.policies) > 1:
        drawn["improvement"] = charts.improvement(_compared(evaluation))
    if flow_times:
        drawn["flow-time"] = charts.flow_time_cdf(flow_times, list(evaluation.kinds))
    if episodes:
        drawn["gantt"] = episode_charts.gantt()
        drawn["use-upper"] = drawn["use-lower"] = episode_charts.utilisation()
        drawn["queue"] = episode_charts.queue_length()
    return drawn


def _ranked(evaluation: Evaluation) -> pd.DataFrame:
    """Rows for `charts.ranking`; a metric that has no better direction keeps the order of J."""
    parts = []
    for metric in evaluation.metrics:
        rows = evaluation.rows(metric.name)
        rows.columns = ["policy", "label", "kind", "mean", "ci_low", "ci_high"]
        if metric.better is not None:
            rows = rows.sort_values("mean", ascending=metric.better == "lower", kind="stable")
        parts.append(rows.assign(metric=metric.name, place=range(len(rows))))
    return pd.concat(parts)


def _compared(evaluation: Evaluation) -> pd.DataFrame:
    """Rows for `charts.improvement`."""
    probabilities = pd.DataFrame(
        {"policy": row["policy"], **row["against"]["probability"]} for row in evaluation.policies
    ).rename(columns={"value": "probability"})
    rows = evaluation.rows().merge(probabilities, on="policy")
    return rows[rows["policy"] != evaluation.measure]


def _profiles(evaluation: Evaluation) -> dict[str, np.ndarray]:
    """Performance profiles of J by policy, lowest mean J first."""
    names = list(evaluation.kinds)
    values = values_of(evaluation.results, RANKED_BY).loc[names].to_numpy()
    return dict(zip(names, performance_profiles(values, PROFILE_RATIOS), strict=True))


def _json(data: Any) -> Markup:
    """JSON that can stand inside a <script> element."""
    return Markup(json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def _library() -> str:
    """Vega-Embed, Vega-Lite of the version that altair writes for, and Vega."""
    version = alt.SCHEMA_VERSION.rpartition(".")[0]
    return vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
