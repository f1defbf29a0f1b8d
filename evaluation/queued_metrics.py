"""The metrics of an evaluation under queued dispatch: each is declared here once."""

from collections.abc import Callable, Mapping

import numpy as np

from env.score.metrics import Metric, by_name
from run.dispatch_settings import Queued

Times = Mapping[str, np.ndarray]
"""By name (K,) of K requests or workflows; times in seconds."""


def queued_metrics(settings: Queued, of_requests: bool) -> dict[str, Metric[Times]]:
    """Every metric of a row, by name.

    Args:
        settings: the group `dispatch`.
        of_requests: whether what arrives are requests of single functions; else it is workflows.
    """
    what = "requests" if of_requests else "workflows"
    each = "" if of_requests else ", mean over its functions"

    def mean(field: str) -> Callable[[Times], float]:
        return lambda times: float(times[field].mean())

    def within(deadline: float) -> Callable[[Times], float]:
        return lambda times: float((times["completion"] <= deadline * times["alone"]).mean())

    parts = {
        "queueing": "time in the central queue",
        "cold_start": "time of its cold starts",
        "execution": "time in containers at work",
    }
    own: list[Metric[Times]] = []
    met: list[Metric[Times]] = []
    if of_requests:
        cold = "share of requests with a cold start"
        own.append(Metric("cold", "", "lower", cold, lambda t: float((t["cold_start"] > 0).mean())))
        for k in settings.slo:
            formula = f"share of requests complete within {k:g} (E + D) of their function"
            met.append(Metric(f"slo_{k:g}", "", "higher", formula, within(k)))
    else:
        formula = "mean of completion time / critical path at full speed"
        own.append(Metric("slowdown", "", "lower", formula, mean("slowdown")))
    return by_name(
        Metric(what, "", None, f"how many {what}", lambda times: float(len(times["completion"]))),
        Metric("completion", "s", "lower", f"mean over {what}: end - arrival", mean("completion")),
        Metric(
            "completion_median",
            "s",
            "lower",
            "median of the same",
            lambda times: float(np.median(times["completion"])),
        ),
        *(
            Metric(name, "s", "lower", f"mean over {what}: {text}{each}", mean(name))
            for name, text in parts.items()
        ),
        *own,
        Metric("preemptions", "", "lower", f"runs cut short / {what}", mean("preemptions")),
        Metric(
            "late",
            "",
            "lower",
            f"share of {what} with a completion time beyond {settings.late:g} s",
            lambda times: float((times["completion"] > settings.late).mean()),
        ),
        *met,
    )
