"""Rules of a user's own, for tests of evaluations that play or refuse them."""

from tests.env.worlds import TINY

RULE = """
import os
from dataclasses import dataclass
from pathlib import Path

from agents.order.chosen import Chosen
from env.learn.layouts import Placement
from env.learn.tenant_agents import TenantAgents


@dataclass
class MyRule:
    node: "int" = 0

    def reset(self, env, objective, seed):
        pass

    def place(self, decision):
        memory = decision.function.memory_req
        nodes = decision.candidates(memory)["feasible"].nonzero()[0]
        return Placement(int(nodes[min(self.node, len(nodes) - 1)]), memory)


class Broken(MyRule):
    def place(self, decision):
        return {}["of nobody"]


class Closed(MyRule):
    def place(self, decision):
        raise GeneratorExit("closed")


class Leaves(MyRule):
    def place(self, decision):
        raise SystemExit(0)


class Vanishes(MyRule):
    def place(self, decision):
        if os.fork() == 0:
            os._exit(3)  # its own process ends
        os.wait()
        os._exit(0)


class Refuses(MyRule):
    def place(self, decision):
        decision.env.step("nowhere", 0, 0, 1)


class Endless(MyRule):
    def place(self, decision):
        return self.place(decision)


class Moody(MyRule):
    def place(self, decision):
        if Path("mood").exists():
            raise RuntimeError("in a mood")
        return super().place(decision)


class Lost(MyRule):
    def place(self, decision):
        return Placement(99, 1)


class Greedy(MyRule):
    def place(self, decision):
        return Placement(0, 10**9)


class Silent(MyRule):
    def place(self, decision):
        return None


class LastFirst(MyRule):
    order = Chosen()

    def choose(self, decision):
        return decision.env.waiting[-1]


class Generous(MyRule):
    fit = "worst_fit"
    order = TenantAgents(levels=(1.0, 10.0), mechanism="stride", placement="worst_fit")

    def grant(self, decision):
        return 1.0 + decision.env.newcomer % 3


class Stingy(Generous):
    def grant(self, decision):
        return 0


class Ungenerous(MyRule):
    order = Generous.order


class Lavish(LastFirst):
    def grant(self, decision):
        return 1


class Undecided(MyRule):
    order = Chosen()


class Outspoken(MyRule):
    def choose(self, decision):
        return 0


class Boastful(MyRule):
    kind = "winner"


class Ordered(MyRule):
    order = "fcfs"


class NoPlace:
    def reset(self, env, objective, seed):
        pass


class Needs(MyRule):
    def __init__(self, wish):
        if wish < 0:
            raise ValueError("no wish is below 0")
"""
LINE_OF_WISH = RULE[: RULE.index("raise ValueError")].count("\n") + 1
TOLD = [*TINY, "episodes=2", "record=1"]
