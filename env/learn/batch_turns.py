"""The turns of many simulators side by side, each of all of them one compiled call.

Rows are those of env/learn/batch.py: of E environments with A agents that act, E * A.
"""

from __future__ import annotations

import numpy as np

from env.base.jit import compiled
from env.learn.turns import (
    QUEUE_TURN,
    SHARE_TURN,
    Sight,
    decide,
    see,
    start_decision,
    tier_memory,
)
from env.score.reward import potential
from env.sim.central_queue import choose
from env.sim.choosing import forced_choice, play_to_choice
from env.sim.forecast import update_finish_bounds
from env.sim.placing import place
from env.sim.records import CHOOSE, DONE, NONE, PLACE, SHARE
from env.sim.workflow_tickets import grant

# What the episode of an environment is.
EPISODE = np.dtype(
    [
        ("number", np.int64),  # of the episode in the environment's stream
        ("cheapest", np.float64),  # USD, see `cheapest_cost`
        ("potential", np.float64),  # at the last decision
        # What `play` returned; PLACE once it has been chosen who goes next; DONE: it rests.
        ("kind", np.int64),
        ("tenant", np.int64),  # whose workflow is to get tickets; SHARE alone
        ("turns", np.int64),  # that were an agent's in this episode
    ]
)


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
def first_turn(turn, state, episodes, env):
    """The first turn of the decision that is due; `turn` is the first one of a placement."""
    if episodes[env].kind == CHOOSE:
        return QUEUE_TURN
    if episodes[env].kind == SHARE:
        episodes[env].tenant = state.workflows[state.queue[0].newcomer].tenant
        return SHARE_TURN
    return turn


@compiled
def start_decisions(turn, states, sights, episodes, weights, environments):
    """`start_decision` of some environments; `turn` is the first one of a placement."""
    for env in environments:
        if episodes[env].kind == DONE:
            continue
        state, sight = states[env : env + 1], sight_of(sights, env)
        if episodes[env].kind == CHOOSE:
            forced_choice(state, sight.queue)  # fills it
        first = first_turn(turn, state, episodes, env)
        start_decision(first, state, sight, weights[env], episodes[env].cheapest, True)


@compiled
def see_nothing(context, items, mask, critic, bids):
    """The row of nobody, as `Agent.blank_observation`."""
    context[:] = 0.0
    items[:] = 0.0
    mask[:] = 0.0
    critic[:] = 0.0
    mask[0] = mask[bids] = 1.0


@compiled
def see_all(turn, states, sights, episodes, choices, bids, context, items, mask, critic):
    """`see` of all agents that act at a turn, a row each; `bids` is B of each agent."""
    acting = len(context) // len(episodes)
    for env in range(len(episodes)):
        state, sight = states[env : env + 1], sight_of(sights, env)
        choice = choices[env : env + 1]
        for agent in range(acting):
            row = env * acting + agent
            if not is_due(turn, episodes[env]):
                see_nothing(context[row], items[row], mask[row], critic[row], bids)
                continue
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


@compiled
def decide_all(turn, sights, episodes, choices, actions, bids):
    """`decide` of all agents that act at a turn, a row each."""
    acting = len(actions) // len(choices)
    for env in range(len(choices)):
        sight = sight_of(sights, env)
        if is_due(turn, episodes[env]):
            episodes[env].turns += 1
            for agent in range(acting):
                row = env * acting + agent
                decide(turn, agent, sight, choices[env : env + 1], actions[row], bids[row])


@compiled
def choose_all(turn, states, sights, episodes, choices, weights):
    """Chooses who goes next; where agents place, their decision starts.

    Args:
        turn: the first one of a placement; NONE where the engine places.
        weights: as for `place_all`.
    """
    for env in range(len(episodes)):
        declared = choices[env].declared
        if episodes[env].kind != CHOOSE or declared == NONE:
            continue
        state, sight = states[env : env + 1], sight_of(sights, env)
        choose(state, declared)
        if turn != NONE:
            episodes[env].kind = play_to_choice(state, sight.queue)
            start_decision(turn, state, sight, weights[env], episodes[env].cheapest, True)


@compiled
def place_all(turn, states, sights, episodes, choices, weights, rewards):
    """Places or grants what was decided, plays on, and starts the next decision.

    Where an episode is over none is started; one that was over before is left as it is.

    Args:
        turn: the first one of a placement.
        weights: float64 (E, 3), those of the objective as rewards count them.
        rewards: out, float64 (E,), the fall of each potential.
    """
    for env in range(len(episodes)):
        if episodes[env].kind == DONE:
            rewards[env] = 0.0
            continue
        state, sight = states[env : env + 1], sight_of(sights, env)
        kind = 0
        if episodes[env].kind == PLACE:
            kind = place(state, choices[env].node, tier_memory(state, sight, choices[env].tier))
        elif episodes[env].kind == SHARE:
            grant(state, sight.levels[choices[env].level])
        if kind == 0:
            kind = play_to_choice(state, sight.queue)
        episodes[env].kind = kind
        if kind < 0:
            continue
        update_finish_bounds(state)
        now = potential(state, weights[env], episodes[env].cheapest)
        rewards[env] = episodes[env].potential - now
        episodes[env].potential = now
        if kind != DONE:
            first = first_turn(turn, state, episodes, env)
            start_decision(first, state, sight, weights[env], episodes[env].cheapest, True)
