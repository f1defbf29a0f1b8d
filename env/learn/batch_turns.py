"""The turns of many simulators side by side, each of all of them one compiled call.

Rows are those of env/learn/batch.py: of E environments with A agents that act, E * A.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from env.base.jit import compiled
from env.learn.layouts import NOBODY
from env.learn.turns import (
    NODE_TURN,
    QUEUE_TURN,
    SHARE_TURN,
    Sight,
    decide,
    see,
    start_decision,
    tier_memory,
)
from env.score.reward import potential
from env.sim.events.choosing import forced_choice, play_to_choice
from env.sim.events.placing import place
from env.sim.forecast.candidates import update_finish_bounds
from env.sim.queue.central_queue import choose
from env.sim.queue.workflow_tickets import grant
from env.sim.state.records import CHOOSE, DONE, NONE, PLACE, SHARE

# What the episode of an environment is.
EPISODE = np.dtype(
    [
        ("cheapest", np.float64),  # USD, see `cheapest_cost`
        ("potential", np.float64),  # at the last decision
        # What `play` returned; PLACE once it has been chosen who goes next; DONE: it rests.
        ("kind", np.int64),
        ("tenant", np.int64),  # whose workflow is to get tickets; SHARE alone
        ("turns", np.int64),  # that were an agent's in this episode
    ]
)


class Environments(NamedTuple):
    """E simulators side by side, and how far each of them is."""

    states: np.ndarray  # HANDLE (E,), of each `State`
    sights: Sight  # with a dimension of environments, but for the fields that never change
    episodes: np.ndarray  # EPISODE (E,)
    choices: np.ndarray  # CHOICE (E,)
    weights: np.ndarray  # float64 (E, 4), those of the objective as rewards count them


@compiled
def sight_of(sights, env):
    """The `Sight` of one environment: views of its rows."""
    return Sight(
        sights.first_node[env],
        sights.candidates[env],
        sights.scores[env],
        sights.nodes[env],
        sights.context[env],
        sights.critic[env],
        sights.able[env],
        sights.trace[env],
        sights.cursor[env],
        sights.window[env],
        sights.functions[env],
        sights.edges[env],
        sights.queue[env],
        sights.tiers,
        sights.weights,
        sights.levels,
    )


@compiled
def is_due(turn, episode):
    """Whether a turn is one of the agents of an environment, or nobody's."""
    return episode.kind != DONE and (turn == QUEUE_TURN) == (episode.kind == CHOOSE)


@compiled
def look(turn, envs, env):
    """Starts the decision that is due; `turn` is the first one of a placement."""
    state, sight = envs.states[env : env + 1], sight_of(envs.sights, env)
    first = turn
    if envs.episodes[env].kind == CHOOSE:
        first = QUEUE_TURN
    elif envs.episodes[env].kind == SHARE:
        envs.episodes[env].tenant = state.workflows[state.queue[0].newcomer].tenant
        first = SHARE_TURN
    start_decision(first, state, sight, envs.weights[env], envs.episodes[env].cheapest, True)


@compiled
def look_at(turn, envs, environments):
    """`look` at some environments that have just been loaded."""
    for env in environments:
        if envs.episodes[env].kind == CHOOSE:
            forced_choice(envs.states[env : env + 1], sight_of(envs.sights, env).queue)  # fills it
        if envs.episodes[env].kind != DONE:
            look(turn, envs, env)


@compiled
def see_all(turn, envs, bids, acting, context, items, mask, critic):
    """`see` of all agents that act at a turn, a row each; that of nobody is blank.

    Args:
        bids: B of each agent.
        acting: out, int64 (E * A,), which of the agents of the turn each row is of, or NOBODY.
    """
    together = len(context) // len(envs.episodes)
    for env in range(len(envs.episodes)):
        state, sight = envs.states[env : env + 1], sight_of(envs.sights, env)
        choice = envs.choices[env : env + 1]
        for agent in range(together):
            row = env * together + agent
            if is_due(turn, envs.episodes[env]):
                acting[row] = agent
                if turn == NODE_TURN:
                    acting[row] = choice[0].type
                elif turn == SHARE_TURN:
                    acting[row] = envs.episodes[env].tenant
                see(
                    turn,
                    agent,
                    state,
                    sight,
                    choice,
                    context[row],
                    items[row],
                    mask[row],
                    critic[row],
                )
            else:
                acting[row] = NOBODY
                context[row] = 0.0
                items[row] = 0.0
                mask[row] = 0.0
                critic[row] = 0.0
                mask[row, 0] = mask[row, bids] = 1.0


@compiled
def decide_all(turn, envs, actions, bids):
    """`decide` of all agents that act at a turn, a row each."""
    acting = len(actions) // len(envs.choices)
    for env in range(len(envs.choices)):
        sight = sight_of(envs.sights, env)
        if is_due(turn, envs.episodes[env]):
            envs.episodes[env].turns += 1
            for agent in range(acting):
                row = env * acting + agent
                decide(turn, agent, sight, envs.choices[env : env + 1], actions[row], bids[row])


@compiled
def choose_all(turn, envs):
    """Chooses who goes next; where agents place, from `turn` on, their decision starts."""
    for env in range(len(envs.episodes)):
        declared = envs.choices[env].declared
        if envs.episodes[env].kind != CHOOSE or declared == NONE:
            continue
        state, sight = envs.states[env : env + 1], sight_of(envs.sights, env)
        choose(state, declared)
        if turn != NONE:
            envs.episodes[env].kind = play_to_choice(state, sight.queue)
            look(turn, envs, env)


@compiled
def place_all(turn, envs, rewards):
    """Places or grants what was decided, plays on, and starts the next decision.

    Where an episode is over none is started; one that was over before is left as it is.

    Args:
        turn: the first one of a placement, NONE where the engine places.
        rewards: out, float64 (E,), the fall of each potential.
    """
    for env in range(len(envs.episodes)):
        if envs.episodes[env].kind == DONE:
            rewards[env] = 0.0
            continue
        state, sight = envs.states[env : env + 1], sight_of(envs.sights, env)
        kind, choice = 0, envs.choices[env]
        if envs.episodes[env].kind == PLACE:
            kind = place(state, choice.node, tier_memory(state, sight, choice.tier))
        elif envs.episodes[env].kind == SHARE:
            grant(state, sight.levels[choice.level])
        if kind == 0:
            kind = play_to_choice(state, sight.queue)
        envs.episodes[env].kind = kind
        if kind < 0:
            continue
        update_finish_bounds(state)
        now = potential(state, envs.weights[env], envs.episodes[env].cheapest)
        rewards[env] = envs.episodes[env].potential - now
        envs.episodes[env].potential = now
        if kind != DONE:
            look(turn, envs, env)
