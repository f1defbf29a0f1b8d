"""The agent `queue` between trainer and evaluation: sampled, cloned, saved, compared, refused."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir

from agents.learned.algorithms import policy_of, policy_spaces, ppo_config
from agents.learned.batch_runner import BatchEnvRunner
from agents.learned.callbacks import EPISODE_METRICS
from agents.learned.chunk import ENDED, OPEN
from agents.learned.cloning import demonstrate
from agents.learned.network import SetPolicyNetwork
from agents.learned.policy_file import features_of, save_policy
from agents.learned.queue_order import LearnedOrder
from agents.learned.set_policy import policy_sizes
from env.base.errors import InputError
from env.learn.environments import env_name, make_environment
from env.learn.queue_places import PLACE_ITEM
from env.sim.keep_alive_policy import Lru
from evaluate import check
from evaluation.queued_evaluation import QueuedEvaluation
from run.command import CONF
from run.settings import PPOSettings
from tests.agents.learned.conftest import ray_settings
from tests.agents.learned.test_training import PPO_SETTINGS
from tests.env.learn.test_queue_agent import short_world
from tests.env.learn.test_queue_places import LAYOUTS, PLACED, SMALL_SERVERS
from tests.env.sim.test_queueing import cluster
from tests.env.worlds import TINY
from tests.test_funcsched import composed, small


def save_untrained(folder: Path, *overrides: str) -> None:
    """A policy with random weights that prefers no row by much, as a run would leave it.

    Args:
        folder: to be written.
        overrides: of the world.
    """
    world = short_world(*overrides)
    environment = make_environment(world)
    placed = world["queue_agent"]["placement"] == "learned"
    torch.manual_seed(0)
    networks = {
        name: SetPolicyNetwork(policy_sizes(*pair, (8, 8), "pooling", 2))
        for name, pair in policy_spaces(environment, True).items()
    }
    save_policy(
        folder,
        weights={
            name: {key: array.numpy() for key, array in network.state_dict().items()}
            for name, network in networks.items()
        },
        sizes={name: network.sizes for name, network in networks.items()},
        features=features_of(environment.members),
        layout=f"queue_{world['agents']['layout']}" if placed else "queue",
        memory_tiers=(1.0,),
        objective={},
        config={"dispatch": {"queue_agent": world["queue_agent"]}, "agents": world["agents"]},
    )


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder."""
    folder = tmp_path_factory.mktemp("run") / "policy"
    save_untrained(folder)
    return folder


def test_it_is_compared_beside_the_orders_and_repeats(untrained: Path) -> None:
    played = []
    for _ in range(2):
        evaluation = QueuedEvaluation(
            small("funcsched_parts", f"policy={untrained.parent}", "dispatch.seeds=[1]")
        )
        rows = map(evaluation.play, evaluation.tasks)
        played.append({row.case: row.metrics for row in rows})
    orders = {(case.keep_alive, case.order) for case in played[0]}
    assert {order for _, order in orders} == {"fcfs", "funcsched", "learned"}
    assert len(orders) == 9
    assert played[0] == played[1]
    for case, row in played[0].items():
        parts = sum(row[key] for key in ("queueing", "cold_start", "execution"))
        assert parts == pytest.approx(row["completion"], rel=1e-6)
        if case.order == "learned" and case.ratio == 1.0:
            fcfs = next(
                other
                for of, other in played[0].items()
                if (of.order, of.ratio, of.keep_alive) == ("fcfs", 1.0, case.keep_alive)
            )
            assert row["requests"] == fcfs["requests"]
            assert row["completion"] != fcfs["completion"]


def test_it_can_order_workflows(untrained: Path) -> None:
    told = small("funcsched_workflows", f"policy={untrained}", "dispatch.orders=[fcfs]")
    evaluation = QueuedEvaluation(told)
    rows = {case.order: evaluation.play((case, 1)).metrics for case in evaluation.cases}
    assert set(rows) == {"fcfs", "learned"}
    # Every workflow has run, and none beats its critical path.
    assert rows["learned"]["slowdown"] >= 1


def test_it_keeps_what_it_was_trained_with(tmp_path: Path) -> None:
    key = "dispatch.queue_agent"
    save_untrained(tmp_path, f"{key}.functions=5", f"{key}.placement=first_fit")
    queueing = LearnedOrder(tmp_path, cluster(4096)).rules(Lru())
    assert (queueing.order.functions, queueing.placement) == (5, "first_fit")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_those_who_place_are_compared_too_on_any_cluster(layout: str, tmp_path: Path) -> None:
    """Trained on one type of servers, played on two."""
    save_untrained(tmp_path, PLACED, f"agents={layout}")
    once = ("dispatch.seeds=[1]", "dispatch.keep_alives=[lru]")
    told = small("funcsched_parts", f"policy={tmp_path}", *once, *SMALL_SERVERS)
    evaluation = QueuedEvaluation(told)
    rows = {case.order: evaluation.play((case, 1)).metrics for case in evaluation.cases}
    assert rows["learned"]["requests"] == rows["funcsched"]["requests"]
    assert rows["learned"]["completion"] != rows["funcsched"]["completion"]
    described = json.loads((tmp_path / "policy.json").read_text())
    described["networks"] = {"queue": described["networks"]["queue"]}
    (tmp_path / "policy.json").write_text(json.dumps(described))
    with pytest.raises(InputError, match=r"networks: none for the agent (placer|server_worker)$"):
        LearnedOrder(tmp_path, evaluation.cluster)


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (
            ("policy=hetero_numa",),
            "'placer', dispatch=queued lease=always needs one of",
        ),
        (("policy=nowhere",), "no policy.json in 'nowhere'"),
        (("dispatch.orders=[fcfs,learned]",), "'learned' comes with policy=PATH"),
    ],
)
def test_what_is_no_order_gets_one_line(overrides: tuple[str, ...], says: str) -> None:
    with pytest.raises(InputError) as error:
        check(composed("funcsched_parts", *overrides))
    assert says in str(error.value) and "\n" not in str(error.value)


def test_it_cannot_place_functions(untrained: Path) -> None:
    with pytest.raises(InputError, match="agent `queue`, it needs dispatch=queued lease=always"):
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = compose("evaluate", overrides=[*TINY, f"policy={untrained}", "episodes=1"])
        check(config)


def test_funcsched_is_recorded_as_the_agent_sees_it() -> None:
    recorded = demonstrate(
        "funcsched",
        300,
        short_world(),
        every=10,
        policy_of=partial(policy_of, share_type_policy=True),
        seed=0,
    )
    obs, actions = recorded["queue"]["obs"], recorded["queue"]["actions"]
    assert len(actions) == 300
    assert set(actions.tolist()) == {0, 16}  # the first, or none until it fits
    for row, action in enumerate(actions):
        assert obs["mask"][row, action] == 1
        assert action == (0 if obs["mask"][row, 0] else 16)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_those_who_place_are_recorded_as_the_rule_places(layout: str) -> None:
    recorded = demonstrate(
        "funcsched",
        100,
        short_world(PLACED, f"agents={layout}", *SMALL_SERVERS),
        every=5,
        policy_of=partial(policy_of, share_type_policy=True),
        seed=0,
    )
    others = {"placer": ["placer"], "hierarchical": ["placer", "server"]}.get(layout, ["server"])
    assert sorted(recorded) == sorted(["queue", *others])
    given = PLACE_ITEM.index("by_rule") - len(PLACE_ITEM)
    for policy in others:
        obs, actions = recorded[policy]["obs"], recorded[policy]["actions"]
        by_rule = obs["items"][:, :, given]
        if layout == "server_types":
            # Two bids a function: the highest of the type that the rule gives, 0 of the other.
            highest = obs["mask"].shape[1] - by_rule.shape[1] - 1
            bids = actions[:, 0].reshape(-1, 2)
            assert (np.sort(bids) == [0, highest]).all()
            assert np.array_equal(actions[:, 0] > 0, by_rule.any(axis=1))
            by_rule, actions = by_rule[actions[:, 0] > 0], actions[actions[:, 0] > 0, 1]
        assert (by_rule[np.arange(len(actions)), actions] == 1).all()
        assert (by_rule.sum(axis=1) == 1).all()


def runner(*overrides: str) -> BatchEnvRunner:
    world: dict[str, Any] = short_world(*overrides)
    config = ppo_config(
        PPOSettings.model_validate(PPO_SETTINGS | {"sampler": "fast", "batch_size": 480}),
        ray_settings(envs_per_runner=2),
        environment=env_name(world),
        world=world,
        spaces=policy_spaces(make_environment(world), True),
        share_type_policy=True,
        seed=3,
    )
    return BatchEnvRunner(config=config, worker_index=0)


@pytest.mark.parametrize("overrides", [(), *((PLACED, f"agents={name}") for name in LAYOUTS)])
def test_sampled_rewards_of_whole_episodes_add_up_to_j(overrides: tuple[str, ...]) -> None:
    """For all agents: none is waited for in the first decision, so that all act in it."""
    sampling = runner(*overrides)
    chunks = sampling.sample(num_episodes=2)
    costs = list(sampling.get_metrics()[EPISODE_METRICS]["J"].peek())
    assert len(costs) == 2
    rows = {}
    for policy in chunks[0].modules:
        earned = np.zeros(2)
        ended = np.zeros(2, bool)
        for steps in (chunk.modules[policy] for chunk in chunks):
            for row in range(len(steps)):
                environment = steps.environment[row]
                if not ended[environment] and steps.following[row] != OPEN:
                    earned[environment] += steps.rewards[row]
                    ended[environment] = steps.following[row] == ENDED
                mask = steps.obs["mask"][row]
                begins = 0, len(mask) - steps.obs["items"].shape[1]  # of bids, if any, and places
                for begin, chosen in zip(begins, np.atleast_1d(steps.actions[row]), strict=False):
                    assert mask[begin + chosen] == 1
        assert sorted(-earned) == pytest.approx(sorted(costs))
        rows[policy] = sum(len(chunk.modules[policy]) for chunk in chunks)
    # Where `queue` holds back nobody places.
    assert all(rows[policy] < rows["queue"] for policy in rows.keys() - {"queue"})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sampled_logits_are_those_of_the_policies(layout: str) -> None:
    sampling = runner(PLACED, f"agents={layout}")
    for policy, steps in sampling.sample(num_timesteps=200)[0].modules.items():
        seen = {part: torch.from_numpy(column) for part, column in steps.obs.items()}
        with torch.no_grad():
            wanted = sampling.module[policy].logits(seen).numpy()
        assert len(steps)
        assert steps.action_dist_inputs == pytest.approx(wanted, abs=1e-5)
