"""Numbers drawn for the engine: which one follows from its place alone, not from what was drawn."""

import numpy as np

from env.base.jit import compiled, compiled_apart
from env.tickets.lottery import STEP, mixed

BACK_OFF = 1 << 32
"""Of a stream of `uniform`; smaller ones are of servers, or of their groups."""
OFFSET = 1 << 33
"""Of the streams of what groups of servers draw."""
CALL = 3 << 32
"""Of the streams of what workflows draw: which of their functions call which."""
FORECAST = 4 << 32
"""Of the streams of what regions draw: the errors of forecasts of their grids."""


@compiled_apart
def uniform(seed, stream: int, number: int):
    """The number at a place of one of the streams of a seed, above 0 and below 1."""
    word = mixed(seed + STEP * np.uint64(stream + 1))
    word = mixed(word + STEP * np.uint64(number + 1))
    return (np.float64(word >> np.uint64(11)) + 0.5) * 2.0**-53


@compiled
def normal(seed, stream: int, number: int):
    """A standard normal variate from two numbers of a stream (Box and Muller, 1958)."""
    radius = np.sqrt(-2.0 * np.log(uniform(seed, stream, 2 * number)))
    return radius * np.cos(2.0 * np.pi * uniform(seed, stream, 2 * number + 1))


@compiled
def weibull(number, shape: float, scale: float):
    """A Weibull variate by inversion of a number between 0 and 1; exponential for the shape 1."""
    return scale * (-np.log(number)) ** (1.0 / shape)
