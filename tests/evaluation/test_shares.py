"""How fairly an episode was shared: by hand, and as the engine counts."""

from collections.abc import Sequence

import numpy as np
import pytest

from agents.baseline import make_baselines
from env.score.metrics import episode_metrics
from env.score.reward import Objective
from env.sim.declared.funding import Funding
from env.sim.declared.hardware import ClusterConfig, ServerType
from env.sim.declared.images import Images
from env.sim.declared.keep_alive_policy import NoKeepAlive
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.view.raw_env import RawEnv
from evaluation.shares import shares_of
from tests.env.small import always_up, held
from tests.episodes import begun
from tests.recorded_worlds import FUNDING

SPEED = 1_000_000
CLUSTER = ClusterConfig(SPEED, 1e9, 1e9, 1e9, (ServerType("box", 1, 0.0, 0.0, 1, 2, 2048),))
OBJECTIVE = Objective(time_weight=1.0, cost_weight=1.0)
TEN, FIVE = (
    WorkflowTemplate(str(seconds), [seconds * SPEED], [1024], [1], [], []) for seconds in (10, 5)
)
PAIR = WorkflowTemplate("pair", [3 * SPEED, 4 * SPEED], [512, 1024], [2, 1], [(0, 1)], [0])
ORDERS = ("fcfs", "rr", "lottery", "stride+funcsched")


TICKETS = held(alice=2, bob=1)
UNLIKE = held(poor=0.5, other=1, rich=10**6)


def finished(
    order: str,
    arrivals: Sequence[float],
    templates: Sequence[WorkflowTemplate],
    tenants: Sequence[str],
    funding: Funding | None,
) -> RawEnv:
    """An episode played to its end; two functions at a time find memory and a core each."""
    (player,) = make_baselines([order], queued=True, funded=funding is not None)
    assert player.order is not None
    env = begun(
        arrivals,
        templates,
        CLUSTER,
        tenants=tenants,
        rules=always_up(player.order, NoKeepAlive()),
        images=Images.by_name(templates, 0.0),
        funding=funding,
        turns_seed=1,
    )
    assert env.done
    return env


def crowd(order: str, funding: Funding) -> RawEnv:
    """120 workflows of three tenants in a minute, three times what the node can do."""
    rng = np.random.default_rng(0)
    arrivals = np.sort(rng.uniform(0.0, 60.0, 120)).tolist()
    names = list(funding.tenants)
    owners = [names[index] for index in rng.integers(len(names), size=120)]
    templates = [(TEN, FIVE, PAIR)[index] for index in rng.integers(3, size=120)]
    return finished(order, arrivals, templates, owners, funding)


def test_first_come_first_served_by_hand() -> None:
    """Alice's first two start at once; from 10 s on two more of hers go before both of Bob's.

    While both wait 20 core-seconds start, of which Alice is entitled to two thirds.
    """
    arrivals, owners = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0], ["alice"] * 4 + ["bob"] * 2
    shares = shares_of(finished("fcfs", arrivals, [TEN] * 6, owners, TICKETS))
    assert list(shares.tenants.index) == ["alice", "bob"]
    assert shares.tenants["tickets"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert shares.quantum == 1.0
    assert shares.times.tolist() == [0.0, 10.0, 10.0]
    assert shares.received == pytest.approx(np.array([[0, 0], [10, 0], [20, 0]]))
    assert shares.entitled == pytest.approx(np.array([[0, 0], [20, 10], [40, 20]]) / 3)
    assert shares.tenants["error"].tolist() == pytest.approx([20 / 3, 20 / 3])
    assert shares.tenants["pair_error"].tolist() == pytest.approx([20 / 3, 20 / 3])
    assert shares.tenants["largest_lag"].tolist() == pytest.approx([0.0, 20 / 3])
    assert shares.tenants["last_lag"].tolist() == pytest.approx([-20 / 3, 20 / 3])
    assert shares.jain == pytest.approx(0.5)
    # The node is full with Alice's until 20 s and with Bob's until 30 s.
    assert shares.tenants["dominant"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert shares.tenants["response"].tolist() == pytest.approx([14.5, 28.0])
    assert shares.tenants["response_deviation"].tolist() == pytest.approx([4.5, 0.0])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("funding", [TICKETS, FUNDING, UNLIKE])
def test_the_end_is_what_the_engine_has_counted(order: str, funding: Funding) -> None:
    """Also where functions are preempted, and where tickets are worth what others make of them."""
    env = crowd(order, funding)
    shares, metrics = shares_of(env), episode_metrics(env.state, OBJECTIVE)
    counted = env.state.tenants
    assert counted["received"].min() > 10.0
    assert shares.received[-1].tolist() == counted["received"].tolist()
    assert shares.entitled[-1].tolist() == counted["entitled"].tolist()
    assert shares.entitled[-1].sum() == pytest.approx(shares.received[-1].sum())
    assert shares.jain == metrics["jain"]
    error = np.abs(shares.tenants["last_lag"]).mean() / shares.received[-1].sum()
    assert error == pytest.approx(metrics["share_error"])
    assert (
        shares.tenants["error"] * shares.quantum >= np.abs(shares.tenants["last_lag"]) - 1e-9
    ).all()
    assert (np.diff(shares.times) >= 0).all() and (np.diff(shares.received, axis=0) >= 0).all()


def test_nothing_contested_is_fair() -> None:
    env = finished("stride", [0.0, 50.0], [TEN, TEN], ["alice", "bob"], TICKETS)
    shares = shares_of(env)
    assert shares.jain == 1.0 == episode_metrics(env.state, OBJECTIVE)["jain"]
    assert shares.times.tolist() == [0.0] and shares.received.sum() == 0.0


def test_without_tickets_there_are_no_shares() -> None:
    env = finished("fcfs", [0.0], [TEN], ["alice"], None)
    assert np.isnan(episode_metrics(env.state, OBJECTIVE)["jain"])
    assert shares_of(env) is None
