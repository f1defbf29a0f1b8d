"""A trained agent `queue`, and those who place beside it, as an order of the central queue."""

from pathlib import Path

from agents.learned.learned_scheduler import policy_folder
from agents.learned.policy_file import DESCRIPTION, check_networks, features_of, load_policy
from env.base.errors import InputError
from env.base.schema import validated
from env.learn.actions import Action
from env.learn.agent import Observation
from env.learn.layouts import AgentsConfig
from env.learn.queue_agent import QueueAgent
from env.learn.queue_places import new_turns
from env.sim.hardware import ClusterConfig
from env.sim.rules import KeepAlive, Rules


class LearnedOrder:
    """The policy of a `policy/` folder, or of the run folder that holds one.

    Functions, threshold, placement and layout are what it was trained with.

    Args:
        path: the folder, or the name of a policy shipped with the project.
        cluster: the hardware.

    Raises:
        InputError: the folder is missing or damaged, or the policy is of other agents.
    """

    def __init__(self, path: str | Path, cluster: ClusterConfig) -> None:
        folder = policy_folder(path)
        policy = load_policy(folder)
        trained = policy.description
        told, where = trained.config, f"{folder / DESCRIPTION}: config"
        dispatch = told.get("dispatch")
        given = dispatch.get("queue_agent") if isinstance(dispatch, dict) else None
        if not trained.layout.startswith("queue"):
            raise InputError(
                f"policy: {folder} is of the layout '{trained.layout}', dispatch=queued "
                "lease=always needs one of the agent `queue`, see experiment=queue_agent"
            )
        self._settings = validated(QueueAgent, given or {}, f"{where}.dispatch.queue_agent")
        layout = None
        if self._settings.placement == "learned":
            layout = validated(AgentsConfig, told.get("agents") or {}, f"{where}.agents")
        self._turns = new_turns(self._settings, layout, cluster, self._decide)
        check_networks(trained, self._turns.agents, str(folder))
        self._policy = policy.fitted(
            features=features_of(self._turns.agents),
            layout=self._settings.layout_with(layout.layout if layout else ""),
            memory_tiers=trained.memory_tiers,
            bid_levels=None if layout is None else layout.bid_levels,
            where=str(folder),
        )

    def rules(self, keep_alive: KeepAlive) -> Rules:
        """How a world works that dispatches as the policy says."""
        return Rules.always_up(self._settings, keep_alive, self._settings.rule, self._turns)

    def _decide(self, name: str, seen: Observation) -> Action:
        return self._policy.act(name, seen)
