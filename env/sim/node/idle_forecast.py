"""Forecast of an image's next idle time, for those beyond the histogram: ARIMA, outside the engine.

The engine stops with FORECAST when images have new idle times, and goes on with their windows.
"""

import warnings

import numpy as np

from env.sim.node.keep_alive import learn_idle_times
from env.sim.state.block import State


def learn(state: State, earlier: np.ndarray) -> None:
    """Fills the histograms of idle times; nothing where the keep-alive policy remembers none.

    Args:
        state: at time 0.
        earlier: EARLIER (K,), executions before time 0, in the order of their begins.
    """
    if len(earlier) and state.idle_times.shape[1]:
        learn_idle_times(state, earlier["image"], earlier["begin"], earlier["end"])
        answer_forecasts(state)


def answer_forecasts(state: State) -> None:
    """Sets the windows of all images that await a forecast of their next idle time."""
    options, images = state.options[0], state.images
    order = tuple(options["forecast_order"].tolist())
    margin = float(options["forecast_margin"])
    for image in np.flatnonzero(images["awaits_forecast"]):
        count = images[image]["idle_times"]
        oldest_first = np.roll(state.idle_times[image], -count)[-count:]  # of a ring
        seconds = next_idle_time(oldest_first, order)
        images[image]["prewarm_after"] = seconds * (1 - margin)
        images[image]["keep_until"] = seconds * (1 + margin)
    images["awaits_forecast"] = 0
    state.queue["forecasts_due"] = 0


def next_idle_time(idle_times: np.ndarray, order: tuple[int, ...]) -> float:
    """Seconds, forecast by an ARIMA model; at least 0.

    The last idle time is repeated where nothing is to be fitted: when all are the same, or no more
    than the parameters of the model (p and q of them, mean and variance) and the d differences.

    Args:
        idle_times: (H,) seconds, the oldest first, at least one.
        order: (p, d, q) of the model.
    """
    if len(idle_times) < sum(order) + 2 or np.ptp(idle_times) == 0:
        return float(idle_times[-1])
    # Loaded only here: it takes a second and few ever need it.
    from statsmodels.tools.sm_exceptions import ConvergenceWarning
    from statsmodels.tsa.arima.model import ARIMA

    with warnings.catch_warnings():
        # On short series the fit warns of its start values, and that it did not quite converge; its
        # result is used all the same. All other warnings are shown.
        warnings.filterwarnings("ignore", "(Non-stationary|Non-invertible) starting", UserWarning)
        warnings.filterwarnings("ignore", "Too few observations to estimate start", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        forecast = ARIMA(idle_times, order=order).fit().forecast(1)
    return max(0.0, float(forecast[0]))
