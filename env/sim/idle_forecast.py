"""Forecast of an image's next idle time, for those beyond the histogram: ARIMA, outside the engine.

The engine stops with FORECAST when an image has a new idle time, and goes on with the windows.
"""

import warnings

import numpy as np

from env.sim.records import NONE, Controller

ORDER = (1, 0, 0)
"""(p, d, q) of the model; fitting is cheap and never fails on the few idle times there are."""


def answer_forecast(controller: Controller) -> None:
    """Sets the windows of the image whose next idle time is asked for."""
    image = int(controller.queue[0]["forecast_image"])
    controller.queue[0]["forecast_image"] = NONE
    seconds = next_idle_time(last_idle_times(controller, image))
    margin = float(controller.options[0]["forecast_margin"])
    controller.images[image]["prewarm_after"] = seconds * (1 - margin)
    controller.images[image]["keep_until"] = seconds * (1 + margin)


def last_idle_times(controller: Controller, image: int) -> np.ndarray:
    """Seconds, the oldest remembered one first."""
    count = int(controller.images[image]["idle_times"])
    ring = controller.idle_times[image]
    if count <= len(ring):
        return ring[:count].copy()
    return np.roll(ring, -(count % len(ring)))


def next_idle_time(idle_times: np.ndarray) -> float:
    """Seconds, forecast by an ARIMA model; at least 0.

    Idle times that are all the same are repeated: nothing is to be fitted.

    Args:
        idle_times: (H,) seconds, the oldest first, at least one.
    """
    if len(idle_times) < 3 or np.ptp(idle_times) == 0:
        return float(idle_times[-1])
    # Loaded only here: it takes a second and few ever need it.
    from statsmodels.tsa.arima.model import ARIMA

    with warnings.catch_warnings():
        # Short series make the fit warn of its start values; its result is used all the same.
        warnings.simplefilter("ignore")
        forecast = ARIMA(idle_times, order=ORDER).fit().forecast(1)
    return max(0.0, float(forecast[0]))
