"""A trained agent `queue` as an order of the central queue."""

from pathlib import Path

from agents.learned.policy_file import features_of, load_policy
from agents.learned.scheduler import policy_folder
from env.layouts import Observation
from env.queue_agent import QueueAgent, QueueTurn
from env.schema import validated
from env.sim.controller import KeepAlive, Queueing
from env.sim.errors import InputError


class LearnedOrder:
    """The policy of a `policy/` folder, or of the run folder that holds one.

    Functions, threshold and placement are what it was trained with.

    Args:
        path: the folder, or the name of a policy shipped with the project.

    Raises:
        InputError: the folder is missing or damaged, or the policy is of other agents.
    """

    name = "learned"

    def __init__(self, path: str | Path) -> None:
        folder = policy_folder(path)
        policy = load_policy(folder)
        trained = policy.description
        if trained.layout != "queue":
            raise InputError(
                f"policy: {folder} is of the layout '{trained.layout}', dispatch=queued needs one "
                "of the agent `queue`: train.py dispatch=queued"
            )
        dispatch = trained.config.get("dispatch")
        given = dispatch.get("queue_agent") if isinstance(dispatch, dict) else None
        self._settings = validated(QueueAgent, given or {}, f"{folder}: dispatch.queue_agent")
        agent = self._settings.agent
        shapes = [(shape.choices, shape.bids) for shape in trained.networks.values()]
        if list(trained.networks) != [agent.name] or shapes != [(agent.choices, agent.bids)]:
            raise InputError(
                f"{folder}: networks: one of '{agent.name}' is needed, with {agent.choices} choice "
                f"an item and {agent.bids} bids"
            )
        self._policy = policy.fitted(
            features=features_of({agent.name: agent}),
            layout=trained.layout,
            memory_tiers=trained.memory_tiers,
            where=str(folder),
        )

    def queueing(self, keep_alive: KeepAlive) -> Queueing:
        """How a controller works that dispatches as the policy says."""
        turn = QueueTurn(self._settings, self._decide)
        return Queueing(self._settings, keep_alive, self._settings.placement, turn)

    def _decide(self, seen: Observation) -> int:
        return int(self._policy.act(self._settings.agent.name, seen))
