"""Agents for kinds of decision beside the engine's own, one each (env/sim/declared/aside.py)."""

from __future__ import annotations

from typing import Final

from env.base.jit import compiled, places
from env.learn.agent import Agent
from env.learn.kind import Kind, Turn
from env.learn.observation import LOG_50, log_of
from env.score.greedy_score import leased_cores
from env.sim.declared.aside import DecisionKind
from env.sim.state.records import ASIDE

CONTEXT_FEATURES: Final = (
    "active_workflows",  # log
    "leased_cores",  # share of all cores under a lease
)
CONTEXT: Final = places(CONTEXT_FEATURES)


def kind_of(asked: DecisionKind, place: int) -> Kind:
    """What the agent of a kind is asked, by the kind's place among those of the world."""
    fill, carry_out = asked.fill, asked.apply

    @compiled
    def see(agent, state, sight, choice, context, items, mask):
        active = state.cluster[0].arrived - state.cluster[0].finished_workflows
        context[CONTEXT.active_workflows] = log_of(active) / LOG_50
        context[CONTEXT.leased_cores] = leased_cores(state) / state.cluster[0].cores
        items[:] = 0.0
        fill(state, choice[0].subject, items, mask)

    @compiled
    def apply(state, sight, choice):
        carry_out(state, choice[0].subject, choice[0].row)
        return ASIDE

    agent = Agent(
        asked.name, asked.name, asked.features, asked.rows, context_features=CONTEXT_FEATURES
    )
    return Kind(ASIDE + 1 + place, (Turn([agent], see),), apply, due=asked.due)
