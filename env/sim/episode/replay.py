"""Re-runs episode files: `python -m env.sim.episode.replay FILE...`.

Prints what the simulator computed as JSON with the field names of the format: one object for one
file, an array of objects in the order given for several. Where a file states what is expected,
every difference is a line on standard error and the exit code is 1. Bad input: one line, exit 2.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import Any

from env.base.errors import InputError, located
from env.base.schema import one_line
from env.sim.episode.episode_file import EpisodeFile, Results, json_rows, read_episode
from env.sim.episode.recording import results_of
from env.sim.view.raw_env import RawEnv

# Another order of float64 additions moves a time by about 1e-13 s; a different rounding of work to
# whole operations moves it by far more than this.
TOLERANCE = 1e-9


def played(episode: EpisodeFile) -> RawEnv:
    """Runs the actions of `episode`; the simulator at the end, every step in its `logs`.

    Raises:
        InputError: the simulator cannot run it, or asks for another function than the file places.
    """
    env = RawEnv(
        episode.arrival_times,
        episode.templates(),
        episode.cluster_config(),
        record=True,
        tenants=episode.tenants,
    )
    env.reset()
    for index, action in enumerate(episode.actions):
        function = env.current_function
        asked = None if function is None else (function.wf_id, function.fn_id)
        if asked != (action.workflow_id, action.function_id):
            raise InputError(
                f"actions.{index}: places workflow {action.workflow_id} function "
                f"{action.function_id}, but {_shown(asked)}"
            )
        env.step(
            action.server_type,
            action.server_index,
            action.numa_node_index,
            action.memory_allocated_mb,
        )
    return env


def replayed(episode: EpisodeFile) -> Results:
    """Runs the actions of `episode` and returns what came of them.

    Raises:
        InputError: as for `played`.
    """
    return results_of(played(episode))


def differences(computed: Results, expected: Results) -> list[str]:
    """One line for each number that differs.

    Times and rents may differ by `TOLERANCE`; ids, sets, counts and hours must be equal. Servers
    that were never rented may be left out of either.
    """
    return _differences("", _comparable(computed), _comparable(expected))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS,
        prog="python -m env.sim.episode.replay",
        description="Re-run episode files and print, as JSON, what the simulator computed: one "
        "object for one file, an array for several. Exit code 1 if a file expects other numbers.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="episode file, plain or .gz")
    files = parser.parse_args(arguments).files
    printed = []
    found = []
    try:
        for file in files:
            episode = read_episode(file)
            with located(file):
                computed = replayed(episode)
            printed.append(
                f"{{\n{json_rows({'name': episode.name} | computed.model_dump(), 1)}\n}}"
            )
            if episode.expected is not None:
                found += [f"{file}: {line}" for line in differences(computed, episode.expected)]
    except InputError as error:
        print(one_line(str(error)), file=sys.stderr)
        return 2
    print(printed[0] if len(files) == 1 else "[\n" + ",\n".join(printed) + "\n]")
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


def _shown(asked: tuple[int, int] | None) -> str:
    if asked is None:
        return "the episode is over"
    return f"the simulator asks for workflow {asked[0]} function {asked[1]}"


def _comparable(results: Results) -> dict[str, Any]:
    """`results` with rows under the names of what they are about, for matching and reading."""
    plain: dict[str, Any] = results.model_dump()
    for key in ("decisions", "workflow_completion_times"):
        plain[key] = {str(index): row for index, row in enumerate(plain[key])}
    plain["functions"] = {
        f"workflow {row.pop('workflow_id')} function {row.pop('function_id')}": row
        for row in plain["functions"]
    }
    plain["servers"] = {
        f"{row.pop('server_type')} {row.pop('server_index')}": row
        for row in plain["servers"]
        if row["hours_rented"] > 0
    }
    return plain


def _differences(where: str, computed: Any, expected: Any) -> list[str]:
    if isinstance(computed, dict) and isinstance(expected, dict):
        lines = []
        for key in computed | expected:
            place = f"{where}.{key}" if where else key
            if key not in expected:
                lines.append(f"{place}: computed, but not expected")
            elif key not in computed:
                lines.append(f"{place}: expected, but not computed")
            else:
                lines += _differences(place, computed[key], expected[key])
        return lines
    if isinstance(computed, float) and isinstance(expected, float):
        same = math.isclose(computed, expected, rel_tol=0.0, abs_tol=TOLERANCE)
    else:
        same = computed == expected
    if same:
        return []
    return [f"{where}: {json.dumps(computed)} computed, {json.dumps(expected)} expected"]


if __name__ == "__main__":
    sys.exit(main())
