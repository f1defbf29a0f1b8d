"""Kinds of decision in many simulators side by side, each turn of all of them one compiled call.

Of E environments with A agents that act at once in a turn there are E * A rows, those of one
environment together. A turn can be nobody's in some environments.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from env.base.jit import compiled
from env.learn.observation import copy, write_critic
from env.learn.placing import look_at_nodes
from env.learn.sight import sight_of
from env.score.reward import potential
from env.sim.events.choosing import forced_choice, play_to_choice
from env.sim.forecast.candidates import update_finish_bounds
from env.sim.state.records import CHOOSE, DONE, PLACE

NOBODY: Final = -1
"""Of a row at a turn that is nobody's in its environment."""


@lru_cache
def seeing(see: Any, acting: Any) -> Any:
    """Compiled: `see` of all agents that act at a turn, a row each; that of nobody is blank."""

    @compiled
    def see_all(code, envs, bids, who, context, items, mask, critic):
        together = len(context) // len(envs.episodes)
        for env in range(len(envs.episodes)):
            state, sight = envs.states[env : env + 1], sight_of(envs.sights, env)
            choice = envs.choices[env : env + 1]
            for agent in range(together):
                row = env * together + agent
                mask[row] = 0.0
                if envs.episodes[env].kind == code:
                    who[row] = acting(agent, state, choice)
                    copy(sight.critic, critic[row])
                    see(agent, state, sight, choice, context[row], items[row], mask[row])
                else:
                    who[row] = NOBODY
                    context[row] = 0.0
                    items[row] = 0.0
                    critic[row] = 0.0
                    mask[row, 0] = mask[row, bids] = 1.0

    return see_all


@lru_cache
def deciding(decide: Any) -> Any:
    """Compiled: `decide` of all agents that act at a turn, a row each."""

    @compiled
    def decide_all(code, envs, actions, bids):
        together = len(actions) // len(envs.choices)
        for env in range(len(envs.choices)):
            if envs.episodes[env].kind == code:
                envs.episodes[env].turns += 1
                sight, choice = sight_of(envs.sights, env), envs.choices[env : env + 1]
                for agent in range(together):
                    row = env * together + agent
                    decide(agent, sight, choice, actions[row], bids[row])

    return decide_all


@lru_cache
def applying(apply: Any) -> Any:
    """Compiled: carries out what was decided, plays on and looks at the decision that is due."""

    @compiled
    def apply_all(code, envs):
        for env in range(len(envs.episodes)):
            if envs.episodes[env].kind == code:
                state, sight = envs.states[env : env + 1], sight_of(envs.sights, env)
                kind = apply(state, sight, envs.choices[env : env + 1])
                if kind == 0:
                    kind = play_to_choice(state, sight.queue)
                envs.episodes[env].kind = kind
                if kind >= 0:
                    look(envs, env)

    return apply_all


@compiled
def look(envs, env):
    """Notes the potential of an environment, and looks at the decision that is due.

    All at once, while its records are in the processor's caches.
    """
    state, sight, episode = envs.states[env : env + 1], sight_of(envs.sights, env), envs.episodes
    update_finish_bounds(state)
    reached = potential(state, envs.weights[env], episode[env].cheapest)
    episode[env].reached = reached
    if episode[env].kind == DONE:
        return
    trace, cursor = sight.trace, sight.cursor
    if len(trace) > 0:
        while trace[cursor[0] + 1, 0] <= state.cluster[0].time:
            cursor[0] += 1
        before, reference = trace[cursor[0], 1], trace[len(trace) - 1, 1]
        write_critic(state, episode[env].cheapest, reached, before, reference, sight.critic)
    if episode[env].kind == PLACE:
        look_at_nodes(state, sight)


@compiled
def look_at(envs, environments):
    """`look` at some environments that have just been loaded."""
    for env in environments:
        if envs.episodes[env].kind == CHOOSE:
            forced_choice(envs.states[env : env + 1], sight_of(envs.sights, env).queue)  # fills it
        look(envs, env)
