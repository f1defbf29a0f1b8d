"""Random choices under masks, compiled, so that what is measured is the environment."""

from benchmarks.simulator import next_number
from env.base.jit import compiled


@compiled
def choose(mask, random, actions):
    """A random allowed choice for every row; returns the next number of the generator."""
    for row in range(len(mask)):
        random = next_number(random)
        allowed = 0
        for action in range(mask.shape[1]):
            allowed += mask[row, action] > 0.0
        left = (random >> 33) % allowed
        for action in range(mask.shape[1]):
            if mask[row, action] > 0.0:
                if left == 0:
                    actions[row] = action
                    break
                left -= 1
    return random
