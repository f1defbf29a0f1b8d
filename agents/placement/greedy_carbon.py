"""Placement `greedy_carbon`: the node on which the function emits least now."""

import numpy as np

from agents.rule_kinds import PlacementRule
from agents.scheduler import Decision
from env.sim.events.carbon import intensity_at
from env.sim.events.placing import transfer_between_regions
from env.sim.state.containers import declared_left
from env.sim.state.records import JOULES_PER_KWH


class GreedyCarbon(PlacementRule):
    """The least gCO2e of its work at this hour's intensity, and of its data; ties by finish time.

    What servers draw at rest counts for nothing, nor does what comes later. A rule so simple gets
    most of what can be saved: Sukprasert et al., EuroSys 2024.
    """

    def choose(self, decision: Decision) -> int:
        state, nodes = decision.env.state, decision.env.state.nodes
        function, time = int(state.cluster[0]["deciding"]), float(state.cluster[0]["time"])
        grams_per_kwh = [intensity_at(state, region, time) for region in range(len(state.regions))]
        of_region = state.regions["core_watts"] * state.regions["pue"] * grams_per_kwh
        seconds = declared_left(state.functions, function) / nodes["single_core_speed"]
        grams = seconds * of_region[state.servers["region"][nodes["server"]]] / JOULES_PER_KWH
        if len(state.links):
            own = range(len(nodes))
            grams += [transfer_between_regions(state, function, node)[3] for node in own]
        finish = decision.rows["finish_time"]
        return decision.smallest(np.repeat(grams, len(finish) // len(grams)), finish)
