"""How large the numbers of an episode may be, so that every sum of times and bills stays exact.

Files, configurations and whoever builds a cluster in Python are held to the same.
"""

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from env.base.schema import nothing_or
from env.resources.quantity import Quantity
from env.sim.state.records import LONGEST as LONGEST

# Bytes/s: at less, what one function reads may outlast any episode.
LEAST_BANDWIDTH: Final = 1.0
LARGEST_BANDWIDTH: Final = 1e18
# USD per hour that is not 0: at less, the price of a core second is lost beside other prices.
LEAST_RATE: Final = 1e-12
LARGEST_RATE: Final = 1e9
# Beyond it a float64 no longer holds every whole number.
LARGEST_WHOLE: Final = 2**53
# Operations, and operations/s of all cores together: the engine counts them in 64-bit integers.
LARGEST_WORK: Final = 2**62
# MB: all that waits on a node is summed up, of some 1,000,000 functions.
LARGEST_MEMORY: Final = 10**12
# Threads of a function, and cores of a NUMA node.
MOST_CORES: Final = 1_000_000
MOST_SERVERS: Final = 100_000
MOST_NODES_OF_A_SERVER: Final = 1_000


def _named(name: str) -> str:
    if name in ("cores", "memory"):
        raise ValueError(f"'{name}' has a key of its own, another name is needed")
    return name


# The same as types of declared values.
Name = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, Field(strict=True, ge=0, le=LARGEST_WHOLE)]
Positive = Annotated[int, Field(strict=True, ge=1, le=LARGEST_WHOLE)]
Seconds = Annotated[float, Field(strict=True, ge=0, le=LONGEST)]
Cores = Annotated[int, Field(strict=True, ge=1, le=MOST_CORES)]
Memory = Annotated[int, Field(strict=True, ge=1, le=LARGEST_MEMORY)]
Bandwidth = Annotated[float, Field(strict=True, ge=LEAST_BANDWIDTH, le=LARGEST_BANDWIDTH)]
Probability = Annotated[float, Field(strict=True, gt=0, le=1)]
Rate = Annotated[float, Field(strict=True, ge=0, le=LARGEST_RATE), nothing_or(LEAST_RATE)]
ResourceName = Annotated[str, Field(pattern=r"^[\w.-]{1,40}$"), AfterValidator(_named)]
NamedResources = dict[ResourceName, Quantity]
"""What a NUMA node has, or a function needs, by name."""
