"""`QueuedEnv`: an episode of workflows under queued dispatch, and the loop that plays any.

What compiled code cannot do is done here: taking the log of runs, forecasts, errors in words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from env.base.errors import InputError
from env.sim.central_queue import choose
from env.sim.controller import Chooser, Images, Queueing, new_controller, with_timers
from env.sim.dispatch import play, reset_episode
from env.sim.hardware import ClusterConfig
from env.sim.idle_forecast import answer_forecasts
from env.sim.queue_records import RUN, Controller
from env.sim.records import CHOOSE, FORECAST, NONE, TAKE_RUNS, State
from env.sim.view.raw_env import RawEnv
from env.sim.workflow_template import WorkflowTemplate


def play_on(
    state: State,
    controller: Controller,
    take: Callable[[np.ndarray], None],
    chooser: Chooser | None = None,
) -> int:
    """Plays until the episode ends or waits for its caller.

    Args:
        state: of the episode.
        controller: of the episode.
        take: is given the RUN records that have ended, in the order of their ends.
        chooser: of its `Queueing`; says when there is something to choose.

    Returns:
        DONE, CHOOSE or MORE_ARRIVALS.

    Raises:
        InputError: more workflows are active than there are slots.
    """
    while True:
        kind = (play if chooser is None else chooser.play)(state, controller)
        if kind == FORECAST:
            answer_forecasts(controller)
            continue
        take(controller.runs[: int(controller.queue[0]["runs_size"])].copy())
        controller.queue[0]["runs_size"] = 0
        if kind < 0:
            raise InputError(
                f"more than {len(state.workflows)} workflows are active at "
                f"{float(state.cluster[0]['time'])} s: more slots are needed"
            )
        if kind != TAKE_RUNS:
            return int(kind)


class QueuedEnv(RawEnv):
    """One episode: workflows arrive, their functions wait centrally until a node has memory.

    With an order of its own the episode is over once it is made. Where the caller chooses
    (`agents/order/chosen.py`), `waiting` and `choose` are what `current_function` and `step` are to
    `RawEnv`.

    Attributes:
        runs: RUN records of all that has run, in the order of their ends.

    Args:
        arrival_times: seconds, one a workflow.
        workflow_templates: one a workflow.
        cluster_config: the hardware; all servers are leased and up from the start.
        queueing: how the controller works.
        images: of all functions.
        seed: kept as `seed`; the simulation itself draws nothing at random.

    Raises:
        InputError: see `new_state`.
    """

    def __init__(
        self,
        arrival_times: Sequence[float],
        workflow_templates: Sequence[WorkflowTemplate],
        cluster_config: ClusterConfig,
        queueing: Queueing,
        images: Images,
        seed: int | None = None,
    ) -> None:
        super().__init__(arrival_times, workflow_templates, cluster_config, seed)
        distinct = list({id(template): template for template in workflow_templates}.values())
        self.controller = new_controller(self.state, distinct, images, queueing, cluster_config)
        self.state = with_timers(self.state, self.controller)
        self._chooser = queueing.chooser
        self.reset()

    def reset(self) -> None:
        """Starts the same episode again."""
        reset_episode(self.state, self.controller)
        self._taken: list[np.ndarray] = []
        self._play_on()

    @property
    def runs(self) -> np.ndarray:
        """RUN records so far."""
        return np.concatenate([np.zeros(0, RUN), *self._taken])

    @property
    def waiting(self) -> tuple[int, ...]:
        """Indices of the declared functions of which requests wait; `controller.waiting` has more.

        Empty unless the caller has to choose one of them.
        """
        if self._kind != CHOOSE:
            return ()
        return tuple(int(index) for index in np.flatnonzero(self.controller.waiting["count"]))

    def choose(self, declared: int) -> None:
        """Lets the first waiting request of a declared function go next, and plays on.

        It starts once a node has the memory for it; until then all others wait behind it.

        Args:
            declared: one of `waiting`.

        Raises:
            InputError: no request of it waits, or nothing is to be chosen.
        """
        if declared not in self.waiting:
            raise InputError(
                f"choose: no request of declared function {declared} is to be chosen now"
            )
        choose(self.controller, declared, NONE)
        self._play_on()

    def _play_on(self) -> None:
        """To the end, or until the caller has to choose."""
        told = self.state, self.controller, self._taken.append, self._chooser
        while (kind := play_on(*told)) == CHOOSE and self._chooser is not None:
            self._chooser.choose(self.state, self.controller)
        self._kind = kind

    def fork(self) -> QueuedEnv:
        """An independent copy at this moment."""
        other = object.__new__(QueuedEnv)
        other.__dict__.update(self.__dict__)
        other.state = State(*(array.copy() for array in self.state))
        other.controller = Controller(*(array.copy() for array in self.controller))
        other._taken = list(self._taken)
        return other
