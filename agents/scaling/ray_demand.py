"""Scaling `ray_demand`: servers as Ray's autoscaler launches and terminates them."""

import numpy as np

from agents.rule_kinds import ScalingRule, idle_seconds, waiting
from agents.scaling.demand_scheduler import Node, NodeType, Resources, plan
from agents.scheduler import Decision
from env.resources.quantity import UNIT
from env.sim.state.records import IN_SERVICE


class RayDemand(ScalingRule):
    """Does what Ray's demand scheduler plans.

    A server is a node, with the cores and the memory of its NUMA nodes together. Functions that
    wait are demands of their threads and memory; so is each thread that has no core of its own.
    """

    def change(self, decision: Decision, kind: int, idle: float) -> int:
        env, state = decision.env, decision.env.state
        autoscale, kinds = env.rules.lease.autoscale, env.cluster_config.server_types
        least = autoscale.least if autoscale is not None else 0
        types = {
            each.name: NodeType(
                _units(each.cores, each.numa_nodes * each.memory),
                each.count,
                min(least, each.count),
            )
            for each in kinds
        }
        functions = waiting(state)[["parallelism", "memory_req"]].tolist()
        nodes, demands = [], [_units(*function) for function in functions]
        for server in np.flatnonzero(state.servers["condition"] == IN_SERVICE).tolist():
            numa, record = state.nodes[state.nodes["server"] == server], state.servers[server]
            cores = int(numa["cpu"].sum() - numa["parallelism"].sum())
            memory = int(numa["memory"].sum() - numa["allocated_memory"].sum())
            demands += [_units(1, 0)] * -cores
            name, up = kinds[record["type"]].name, bool(record["ready_time"] <= env.time)
            left, seconds = _units(max(0, cores), memory), idle_seconds(state, server)
            nodes.append(Node(name, types[name].total, left, seconds, up))
        planned = plan(types, nodes, demands, idle_timeout=self.idle_timeout)
        if kinds[kind].name in planned.launches:
            return 1
        return -any(node.type == kinds[kind].name for node in planned.terminations)


def _units(cores: int, memory: int) -> Resources:
    return {"CPU": cores * UNIT, "memory": memory * UNIT}
