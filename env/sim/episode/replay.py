"""Re-runs episode files: `python -m env.sim.episode.replay FILE...`.

Prints what the simulator computed as JSON, as an episode file has it under `expected`: one object
for one file, an array of objects in the order given for several. Where a file states what is
expected, every difference is a line on standard error and the exit code is 1. Bad input: one line,
exit 2.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from env.base.errors import InputError, located
from env.base.pipes import until_reader_leaves
from env.sim.episode.episode_file import check_files, json_text
from env.sim.episode.model import ActionModel, EpisodeFile, Results, named
from env.sim.episode.recorded_world import specification
from env.sim.episode.recording import results_of
from env.sim.events.dispatch import look_again_at
from env.sim.view.raw_env import RawEnv

# Another order of float64 additions moves a time by about 1e-13 s; a different rounding of work to
# whole operations moves it by far more than this.
TOLERANCE = 1e-9
# Sums over thousands of leases lose the last digits of large numbers.
RELATIVE = 1e-12


def played(episode: EpisodeFile) -> RawEnv:
    """Runs the actions of `episode`; the simulator at the end, every step in its `logs`.

    What the engine decides by its rules it decides again.

    Raises:
        InputError: the simulator cannot run it, or asks for another function than the file places.
    """
    env = RawEnv.of(specification(episode), record=True)
    while not env.done:
        index = env.decisions
        if index == len(episode.actions) and env.waiting and len(env.state.recovery):
            env.choose(None)  # until no server is left for them
            continue
        if index == len(episode.actions):
            raise InputError(f"actions: {index} found, but functions wait at {env.time} s")
        with located(f"actions.{index}"):
            (_choose if env.waiting else _place)(env, episode.actions[index])
    if env.decisions < len(episode.actions):
        function = named(episode.actions[env.decisions].function)
        raise InputError(f"actions.{env.decisions}: places {function}, but the episode is over")
    return env


def replayed(episode: EpisodeFile) -> Results:
    """Runs the actions of `episode` and returns what came of them.

    Raises:
        InputError: as for `played`.
    """
    return results_of(played(episode))


def differences(computed: Results, expected: Results) -> list[str]:
    """One line for each number that differs.

    Times and rents may differ by `TOLERANCE`; all else must be equal. Servers
    that were never rented may be left out of either.
    """
    return _differences("", _named(computed), _named(expected))


@until_reader_leaves()
def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    printed = []

    def differing(episode: EpisodeFile) -> list[str]:
        computed = replayed(episode)
        printed.append({"name": episode.name, **computed.model_dump(exclude_none=True)})
        return differences(computed, episode.expected) if episode.expected is not None else []

    code = check_files("env.sim.episode.replay", __doc__, arguments, differing, sys.stderr)
    if code < 2:
        print(json_text(printed if len(printed) > 1 else printed[0]))
    return code


def _place(env: RawEnv, action: ActionModel) -> None:
    function = env.current_function
    assert function is not None
    asked = function.wf_id, function.fn_id
    if asked != action.function:
        raise InputError(
            f"places {named(action.function)}, but the simulator asks for {named(asked)}"
        )
    env.step(*action.place, action.memory_allocated_mb)


def _choose(env: RawEnv, action: ActionModel) -> None:
    """Takes a choice at its recorded moment; until then all that wait are held back."""
    if action.dispatch_time is None:
        raise InputError("dispatch_time: missing, order 'chosen' needs it")
    first_of = {}
    for waiting in env.waiting:
        first = env.state.functions[env.state.waiting[waiting]["first"]]
        first_of[int(first["wf_id"]), int(first["fn_id"])] = waiting
    declared = first_of.get(action.function)
    if declared is not None and action.dispatch_time == env.time:
        env.choose(declared)
        return
    if action.dispatch_time <= env.time:
        raise InputError(
            f"{named(action.function)} cannot start at {action.dispatch_time} s, it is {env.time} s"
        )
    # Whatever it was that had somebody asked at that moment.
    if env.state.queue[0]["patience_timer"] != action.dispatch_time:
        look_again_at(env.state, action.dispatch_time)
    env.choose(None)


def _named(results: Results) -> dict[str, Any]:
    """The numbers of each row by the row's name, so that rows of any order are compared."""
    numbers = results.model_dump(exclude={"runs", "servers"})
    runs: Counter[str] = Counter()
    for run in results.runs:
        name = f"runs.{named(run.function)}"
        numbers[f"{name} run {runs[name]}"] = run.model_dump()
        runs[name] += 1
    for row in results.servers:
        if row.lease_seconds:
            numbers[f"servers.{row.server_type} {row.server_index}"] = row.model_dump()
    return numbers


def _differences(where: str, computed: Any, expected: Any) -> list[str]:
    if isinstance(computed, tuple):
        computed, expected = dict(enumerate(computed)), dict(enumerate(expected))
    if isinstance(computed, dict):
        lines = []
        for key in computed | expected:
            place = f"{where}.{key}" if where else str(key)
            if key not in expected:
                lines.append(f"{place}: computed, but not expected")
            elif key not in computed:
                lines.append(f"{place}: expected, but not computed")
            else:
                lines += _differences(place, computed[key], expected[key])
        return lines
    same = computed == expected
    if isinstance(computed, float) and isinstance(expected, float):
        same = math.isclose(computed, expected, rel_tol=RELATIVE, abs_tol=TOLERANCE)
    if same:
        return []
    return [f"{where}: {json.dumps(computed)} computed, {json.dumps(expected)} expected"]


if __name__ == "__main__":
    sys.exit(main())
