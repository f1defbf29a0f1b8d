"""Plays configurations drawn at random and checks all that can be checked: `python -m tests.fuzz`.

    python -m tests.fuzz --minutes 10               as many as there is time for, seed by seed
    python -m tests.fuzz --seed 17 --minutes 0      that one again

A configuration is a list of arguments of `evaluate.py`. A scheduler plays its first episode; the
validator checks the recording, a replay has to agree, and so has the reference where it knows the
world. Then agents that act at random play the same world, and must earn what J says. A finding is
one line: seed, commit, what is wrong, and the arguments. Exit code 1 if there is one.
"""

import argparse
import itertools
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from hydra import initialize_config_dir

from agents.baseline import known_baselines
from env.base.errors import InputError
from env.base.schema import validated
from env.learn.multi_agent import ServerlessEnv
from env.sim.check.validate import violations
from env.sim.declared.episode import Episode
from env.sim.episode.episode_file import EpisodeFile
from env.sim.episode.replay import differences, replayed
from evaluation.contest import Contest, Task
from evaluation.evaluate_settings import EvaluateSettings
from evaluation.evaluation_run import contest_of
from run.command import CONF
from run.composing import assigned, composed, plain
from tests.env.worlds import gym_mask, world
from tests.reference_inputs import Played, placements_of
from tests.strategies import World

REFERENCES = ("best_of", "clairvoyant", "rollout")
"""Baselines that take seconds an episode."""
SLICED = ("rr", "srtf")
"""Those that cut functions into slices of 0.1 s."""
OF_EVALUATION = ("baselines=", "seed=")
"""Arguments that training has not, or in another form."""
LONGEST_RUN = 400
"""Completions of an episode that the reference plays in a moment."""


class Drawing:
    """Draws the arguments of one configuration."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.queued, self.funded = self.chance(0.5), self.chance(0.3)
        self.named, self.types = self.chance(0.3), int(self.rng.integers(1, 4))
        self.seed, self.conditional = seed, self.chance(0.4)
        self.regions = self.one_of("", "", "ab", "abc")
        known = known_baselines(self.queued, self.funded)
        self.player = self.one_of(*[name for name in known if name not in REFERENCES])

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one_of(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def arguments(self) -> list[str]:
        """Of a whole configuration."""
        groups = (self.cluster(), self.workflows(), self.workload(), self.rules(), self.changes())
        groups += (self.objective(),)
        arguments = [argument for group in groups for argument in group]
        return [*arguments, f"baselines=[{self.player}]", f"seed={self.seed}"]

    def cluster(self) -> Iterator[str]:
        """One to three types; the first holds whatever functions need."""
        yield "cluster=tiny"
        yield from ("~cluster.server_types.small", "~cluster.server_types.large")
        for index in range(self.types):
            kind = {
                "server_count": self.one_of(1, 1, 2, 3),
                "hourly_rate": self.one_of(0.1, 0.17, 1.5),
                "cold_start_latency": self.one_of(0.0, 1.0, 2.5, 60.0),
                "numa_nodes_per_server": self.one_of(1, 1, 2),
                "cores_per_numa_node": self.one_of(1, 2, 4),
                "memory_mb_per_numa_node": 16 if index == 0 else self.one_of(4, 8, 16),
                "single_core_speed_ops_per_s": self.one_of(None, None, 500_000),
            }
            if self.named and index == 0:
                kind["resources_per_numa_node"] = {"GPU": 2, "fpga": 1, "CPU": 6}
            elif self.named and self.chance(0.7):
                kind["resources_per_numa_node"] = {"GPU": self.one_of(0.5, 1)}
            yield assigned(f"+cluster.server_types.t{index}", kind)
        if self.funded and self.chance(0.5):
            yield "cluster.cpu_share=tickets"
        if self.regions:
            yield assigned("+cluster.regions", {name: self.region(name) for name in self.regions})
            yield f"+cluster.home={self.one_of(*self.regions)}"
            yield f"+cluster.transfer_kwh_per_gb={self.one_of(0.0, 0.1)}"

    def region(self, name: str) -> dict[str, Any]:
        """What servers cost, do and emit in a region, and its links."""
        links = {
            other: {
                "round_trip": self.one_of(0.0, 0.07, 1.0),
                "bandwidth": self.one_of(1e6, 1e9),
                "egress": self.one_of(0.0, 0.02, 0.9),
            }
            for other in self.regions
            if name < other or (name != other and self.chance(0.3))
        }
        power = {"carbon_intensity_g_per_kwh": self.one_of(50, [0, 400, 20]), "pue": 1.2}
        performance = self.one_of(1.0, 1.0, 0.7)
        return {"price": 1.1, "relative_performance": performance, "power": power, "links": links}

    def workflows(self) -> Iterator[str]:
        """One to three DAGs of one to five functions."""
        yield from ("workflow=inline", "~workflow.mix.album")
        for index in range(self.rng.integers(1, 4)):
            count = int(self.rng.integers(1, 6))
            functions = {f"f{position}": self.function() for position in range(count)}
            edges = [
                {"from": f"f{source}", "to": f"f{target}", "bytes": self.one_of(0, 9, 10**9)}
                | ({"probability": self.one_of(1.0, 0.5, 0.1)} if self.conditional else {})
                for target in range(count)
                for source in range(target)
                if self.chance(0.4)
            ]
            yield assigned(f"+workflow.mix.w{index}", {"functions": functions, "edges": edges})

    def function(self) -> dict[str, Any]:
        """A few seconds of work, one operation, or, not in slices of 0.1 s, more than an hour."""
        longest = 10**7 if self.player in SLICED else 4_000_000_000
        work = self.one_of(1, 10**6, 2_500_000, int(self.rng.integers(1, 10**7)), longest)
        memory, parallelism = self.one_of(1, 4, 8, 16), self.one_of(1, 2, 6)
        function = {"computation": work, "memory": memory, "parallelism": parallelism}
        if self.named and self.chance(0.7):
            amounts = {"GPU": (0.3, 0.5, 0.75, 1, 2), "fpga": (0.0001, 1), "CPU": (1, 2.5)}
            asked = [name for name in amounts if self.chance(0.5)]
            function["resources"] = {name: self.one_of(*amounts[name]) for name in asked}
        if self.regions and self.chance(0.4):
            kind = self.one_of("allowed", "disallowed")
            function["regions"] = {kind: [self.one_of(*self.regions)]}
        return function

    def workload(self) -> Iterator[str]:
        """Up to ten arrivals, some of them at one moment, in pairs or hours apart."""
        yield "workload=fixed"
        gap = self.one_of(0.0, 1.0, 7.3, 60.0, 3600.0)
        times = gap * np.sort(self.rng.integers(0, 8, self.rng.integers(1, 11)))
        yield assigned("workload.arrivals.times", times.tolist())
        yield f"workload.container_cold_start={self.one_of(0.0, 0.0, 2.5, 30.0)}"
        if self.funded:
            for name in "abc":
                tenant = {"share": 1, "tickets": self.one_of(1, 3)}
                yield assigned(f"+workload.tenants.{name}", tenant)

    def changes(self) -> Iterator[str]:
        """Servers that join, drain, leave and fail, and what becomes of functions and data."""
        kind = self.one_of("none", "none", "listed", "random")
        if self.spot and kind == "listed":  # a spot server may not be listed
            kind = "none"
        if self.scaled or (kind == "none" and not self.spot):
            return
        yield f"changes={kind}"
        if kind == "random":
            mean = self.one_of(3.0, 30.0, 3600.0)
            yield assigned("changes.failures", {"shape": self.one_of(0.5, 1.0), "scale": mean})
            yield assigned("changes.repairs", {"shape": 1.0, "scale": self.one_of(1.0, 60.0)})
        if kind == "listed":
            yield assigned("changes.events", [self.event() for _ in range(self.rng.integers(1, 9))])
        # Who fails again and again before an hour's work is done never ends.
        yield f"recovery.retries={self.one_of(0, 2, 10)}"
        yield f"recovery.backoff.wait={self.one_of(0.0, 1.0, 20.0)}"
        yield f"recovery.data_durability={self.one_of('durable', 'server')}"
        yield f"recovery.checkpoint={self.one_of('null', 'null', 0.5)}"

    def event(self) -> dict[str, Any]:
        """Something that happens to a server, mostly early and at moments that are whole."""
        action = self.one_of("join", "drain", "leave", "fail", "fail")
        server = f"t{self.rng.integers(self.types)}{'_a' if self.regions else ''} 0"
        time = self.one_of(0.0, 1.0, 2.0, 4.5, 61.0, float(self.rng.uniform(0, 100)))
        event = {"time": time, "server": server, "action": action}
        if action == "drain":
            event["notice"] = self.one_of(0.0, 1.0, 120.0)
        if action == "fail":
            event["repair"] = self.one_of(None, 0.0, 1.0, 60.0)
        return event

    def objective(self) -> Iterator[str]:
        """Carbon may count, too."""
        if self.chance(0.3):
            yield "+objective.carbon_weight=0.7"

    def rules(self) -> Iterator[str]:
        """Where functions wait, when servers are up, how long containers stay warm."""
        yield f"dispatch={'queued' if self.queued else 'immediate'}"
        lease = self.one_of("hourly", "hourly", "always", "spot", "autoscaled")
        self.spot, self.scaled = lease == "spot", lease == "autoscaled"
        yield f"lease={lease}"
        charged = self.chance(0.5)
        if lease == "always":
            yield f"lease.charged={charged}".lower()
            if not charged and self.chance(0.5):
                prices = {"request": 0.1, "gb_second": {"x86_64": 2.0, "arm64": 1.0}}
                free = {"free_requests": self.one_of(0, 3), "free_gb_seconds": self.one_of(0, 0.1)}
                yield assigned("+lease.use", prices | free)
        if self.spot:
            yield f"lease.spot.share={self.one_of(0.5, 1.0)}"
            yield f"lease.spot.notice={self.one_of(0.0, 120.0)}"
        elif self.scaled:
            order = "fcfs+" if self.queued else ""
            self.player = f"{order}autoscale_{self.one_of('queue', 'utilisation', 'ray')}"
            yield f"lease.autoscale.every={self.one_of(1.0, 30.0)}"
            yield f"lease.autoscale.least={self.one_of(0, 1)}"
        elif lease == "hourly" or charged:
            yield f"++lease.step={self.one_of(1.0, 60.0, 3600.0)}"
        if lease in ("hourly", "spot"):
            yield f"lease.least={self.one_of(1, 60)}"
            if self.queued:
                yield f"dispatch.patience={self.one_of(0.0, 5.0, 'null')}"
        yield f"keep_alive={self.one_of('none', 'none', 'fixed', 'lru', 'faascache')}"


def findings(arguments: list[str]) -> Iterator[str]:
    """What is wrong in the world of some arguments.

    Raises:
        InputError: the world is refused, as a drawn one may be.
    """
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = plain(composed("evaluate", arguments)[0])
    contest = contest_of(validated(EvaluateSettings, config, "evaluate"))
    (seed,) = contest.sources
    ((row, recorded),) = contest.play(Task("", seed, 0, contest.names, True))
    assert recorded is not None and recorded.expected is not None
    yield from violations(recorded)
    yield from differences(replayed(recorded), recorded.expected)
    if row.metrics["J"] < row.metrics["J"] / (1 + row.metrics["bound_gap"]) - 1e-9:
        yield f"J is {row.metrics['J']}, below its bound"
    yield from of_reference(contest, seed, recorded)
    yield from of_agents([one for one in arguments if not one.startswith(OF_EVALUATION)], seed)


def of_reference(contest: Contest, seed: int, recorded: EpisodeFile) -> Iterator[str]:
    """Where the reference has other runs than a recorded episode, if it knows the world."""
    (player,), rules = contest.schedulers, contest.rules
    results = recorded.expected
    assert results is not None
    if rules.order is not None:
        rules = replace(rules, order=player.order, placement=player.fit)
    queue = recorded.options.queue
    unknown = queue is not None and (queue.sharing is not None or queue.order == "chosen")
    unknown = unknown or rules.lease.least > 1
    if unknown or len(results.runs) > LONGEST_RUN or recorded.changes:
        return
    workload = contest.sources[seed].evaluation_episode(0)
    episode = Episode(workload, contest.cluster, rules)
    reference = Played(World(episode, placements=placements_of(recorded)))
    nodes = list(recorded.cluster.places)
    expected = {
        (run.wf_id, run.fn_id, nodes[run.node], run.start_time, run.end_time)
        for run in reference.runs
    }
    ours = {(*run.function, run.place, run.start_time, run.end_time) for run in results.runs}
    if expected != ours or len(reference.runs) != len(results.runs):
        alone, beside = sorted(expected - ours)[:1], sorted(ours - expected)[:1]
        yield f"the reference alone has {alone}, the engine {beside}"


def of_agents(arguments: list[str], seed: int) -> Iterator[str]:
    """What is wrong where agents act at random in a world."""
    rng = np.random.default_rng(seed)
    layout = ("placer", "hierarchical", "server_types")[int(rng.integers(3))]
    env = ServerlessEnv(world(*arguments, f"agents={layout}", seed=seed))
    seen, _ = env.reset(seed=seed)
    for space in env.action_spaces.values():
        space.seed(int(rng.integers(2**31)))
    earned = dict.fromkeys(env.possible_agents, 0.0)
    over: dict[str, Any] = {}
    while env.agents:
        actions = {
            name: env.action_spaces[name].sample(mask=gym_mask(env.members[name], parts["mask"]))
            for name, parts in seen.items()
        }
        for name, parts in seen.items():
            for part, values in parts.items():
                if not np.isfinite(values).all():
                    yield f"{name} sees {part} that is not finite"
        seen, rewards, _, _, over = env.step(actions)
        for name, reward in rewards.items():
            earned[name] += reward
    assert env.raw_env is not None
    weights = env.objective
    J: float = next(iter(over.values()))["episode_metrics"]["J"]
    due = weights.time_weight + weights.completion_weight - J
    for name, total in earned.items():
        if abs(total - due) > 1e-6 * max(1.0, abs(due)):
            yield f"{name} earned {total}, {due} is due"


def commit() -> str:
    """Of the project, marked where files differ from it."""
    described = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(described, capture_output=True, text=True, check=True).stdout.strip()


def outcome(seed: int) -> str:
    """`played`, `refused`, or a finding in the configuration of a seed."""
    arguments = Drawing(seed).arguments()
    try:
        wrong = next(findings(arguments), None)
        if wrong is None:
            return "played"
    except InputError as error:
        if "\n" not in str(error):
            return "refused"
        wrong = "several lines"
    except Exception as error:  # any other is a finding
        wrong = f"{type(error).__name__}: {error}"
    shown = " ".join(f"'{argument}'" for argument in arguments)
    return f"seed {seed}, commit {commit()}: {wrong}: evaluate.py {shown}"


def outcomes(first: int, minutes: float) -> Iterator[str]:
    """Of seed after seed, until the time is over."""
    end = time.monotonic() + 60 * minutes
    for seed in itertools.count(first):
        yield outcome(seed)
        if time.monotonic() >= end:
            break


def main() -> int:
    """The command; returns its exit code."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("tests.fuzz", description=__doc__, formatter_class=shape)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first")
    given = parser.parse_args()
    counted: Counter[str] = Counter()
    for each in outcomes(given.seed, given.minutes):
        counted[each if each in ("played", "refused") else "findings"] += 1
        if each not in counted:
            print(each, flush=True)
    print(
        f"{counted['played']} played, {counted['refused']} refused, {counted['findings']} findings"
    )
    return int(counted["findings"] > 0)


if __name__ == "__main__":
    sys.exit(main())
