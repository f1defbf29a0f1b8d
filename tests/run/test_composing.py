"""Arguments: text is told how to write and arrives unchanged; a sweep comes to its scenarios."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from env.base.errors import InputError
from run.command import Job, Program
from run.composing import Scenario, as_text, expanded, of_resumed, parsed, short_keys
from tests.commands import Command, InProcess, refused
from tests.env.worlds import TINY

SIGNS = "=@#[]{},()$~:;&!?*|<>.%-`\t\\'\"a \N{LATIN SMALL LETTER SHARP S}"
NASTY = st.lists(st.sampled_from(["${", "\\${", "null", "1", *SIGNS])).map("".join)
NASTY = NASTY.filter(lambda text: text != "???")
"""But for what OmegaConf takes for a value that is missing, whatever stands around it."""
WEEK = "workload=azure_like_week"


@given(NASTY)
def test_text_that_is_pasted_arrives_unchanged(text: str) -> None:
    word = as_text("workflow.path", text)
    in_sweep = expanded(parsed([word, f"seed={word.partition('=')[2]},1"], in_sweep=True))[0]
    for argument in (word, *in_sweep):
        (override,) = parsed([argument])
        config = OmegaConf.create({})
        OmegaConf.update(config, "path", override.value())
        assert config.path == text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[seed=1, algo=ppo]", None),
        ("- baselines=[rules.py:MyRule]", "what runs here is typed: give it again"),
        ("- ray.address=theirs:6379", "what runs here is typed"),
        ("- +hydra.callbacks.x._target_=os.mkdir", "not supported"),
        ("[", "not YAML"),
        ("a: &a [*a]", "a list of texts is needed, found a mapping"),
        ("{seed: 1}", "a list of texts is needed, found a mapping"),
        (
            "\n".join(["- &a0 [x, x]", *(f"- &a{n} [{10 * f'*a{n - 1},'}]" for n in range(1, 40))]),
            "a list of texts is needed, found a list of 40",
        ),
    ],
)
def test_what_a_run_of_others_was_told_runs_nothing(
    content: str, says: str | None, tmp_path: Path
) -> None:
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "overrides.yaml").write_text(content)
    typed = parsed([f"resume={tmp_path}", "seed=3"])
    if says is None:
        assert of_resumed(typed, False) == ["algo=ppo"]
        return
    with pytest.raises(InputError, match=says):
        of_resumed(typed, False)


@pytest.fixture
def scenarios() -> list[Scenario]:
    """Those of the last command that ran."""
    return []


@pytest.fixture
def command(in_process: InProcess, scenarios: list[Scenario]) -> Command:
    def prepare(job: Job) -> Program:
        scenarios[:] = job.scenarios
        return lambda folder: None

    return in_process("evaluate", prepare)


def points(scenarios: list[Scenario]) -> list[dict[str, Any]]:
    return [dict(each.point) for each in scenarios]


@pytest.mark.parametrize(
    "written",
    [
        "sweep={lease.step: [60,120], keep_alive: [none,lru]}",
        "sweep={lease: {step: [60,120]}, keep_alive: [none,lru]}",
        "+sweep={keep_alive: [none,lru], lease.step: [60]}",
    ],
)
def test_every_combination_is_a_scenario(
    written: str, command: Command, scenarios: list[Scenario]
) -> None:
    """The last key varies fastest; dotted or nested keys are the same."""
    assert command(*TINY, "workload.container_cold_start=2.5", written).code == 0
    found = points(scenarios)
    if written.startswith("+"):
        assert found == [{"keep_alive": kept, "lease.step": 60} for kept in ("none", "lru")]
    else:
        assert found == [
            {"lease.step": step, "keep_alive": kept}
            for step in (60, 120)
            for kept in ("none", "lru")
        ]
    for each, point in zip(scenarios, found, strict=True):
        assert each.config["lease"]["step"] == point["lease.step"]
        assert each.config["keep_alive"]["policy"] == point["keep_alive"]
        assert each.config["cluster"] == scenarios[0].config["cluster"]
    short = short_keys(found[0])
    assert scenarios[0].name == " ".join(f"{short[key]}={value}" for key, value in found[0].items())
    assert len({each.name for each in scenarios}) == len(scenarios)


def test_nothing_swept_is_one_scenario_without_a_name(
    command: Command, scenarios: list[Scenario]
) -> None:
    assert command(*TINY, "lease.step=60").code == 0
    (only,) = scenarios
    assert (only.name, only.point) == ("", {})
    assert only.config["lease"]["step"] == 60
    assert [override.key_or_group for override in only.overrides][-1] == "lease.step"


def test_mappings_of_a_list_come_one_after_the_other(
    command: Command, scenarios: list[Scenario]
) -> None:
    """Options of a group stand beside keys that they set themselves: keys have the last word."""
    sampling, ratio = "workload/sampling", "workload.sampling.ratio"
    one = f"{{{sampling}: [week_representative,week_random], {ratio}: [0.5]}}"
    assert command(WEEK, f"sweep=[{one},{{{sampling}: [week_rare], {ratio}: [0.1,0.2]}}]").code == 0
    assert points(scenarios) == [
        {sampling: "week_representative", ratio: 0.5},
        {sampling: "week_random", ratio: 0.5},
        {sampling: "week_rare", ratio: 0.1},
        {sampling: "week_rare", ratio: 0.2},
    ]
    found = [each.config["workload"]["sampling"] for each in scenarios]
    kinds = ["representative", "random", "rare", "rare"]
    assert [one["kind"] for one in found] == kinds
    assert [one["ratio"] for one in found] == [0.5, 0.5, 0.1, 0.2]
    assert found[0]["compression"] == 32  # of the option
    # Their keys may stand in any order.
    step, patience = "lease.step", "dispatch.patience"
    swept = f"sweep=[{{{step}: [60], {patience}: [5]}},{{{patience}: [60], {step}: [5]}}]"
    assert command("dispatch=queued", swept).code == 0
    assert points(scenarios) == [{step: 60, patience: 5}, {step: 5, patience: 60}]


def test_what_is_typed_holds_in_every_scenario(command: Command, scenarios: list[Scenario]) -> None:
    """In options that are swept, too."""
    told = ("sweep={dispatch: [queued,immediate]}", "lease.step=60", "seed=[3,4]")
    assert command(*TINY, *told).code == 0
    assert [each.config["dispatch"]["kind"] for each in scenarios] == ["queued", "immediate"]
    for each in scenarios:
        assert each.config["lease"]["step"] == 60
        assert each.config["seed"] == [3, 4]


@pytest.mark.parametrize("text", ["é", 'a "b"', "a: [b], {c}", "${seed}", "\\", "null"])
def test_a_text_that_is_swept_arrives_as_it_is(
    text: str, command: Command, scenarios: list[Scenario]
) -> None:
    _, _, written = as_text("policy", text).partition("=")
    done = command(f"sweep={{policy: [{written}]}}")
    assert done.code == 0, done
    assert [each.config["policy"] for each in scenarios] == [text]


def test_options_of_ones_own_can_be_swept(
    command: Command, scenarios: list[Scenario], tmp_path: Path
) -> None:
    (tmp_path / "mine" / "lease").mkdir(parents=True)
    for step in (60, 90):
        file = tmp_path / "mine" / "lease" / f"every_{step}.yaml"
        file.write_text(f"kind: hourly\nstep: {step}.0\n")
    own = ("--config-dir", str(tmp_path / "mine"))
    done = command(*TINY, "sweep={lease: [every_60,every_90]}", *own)
    assert done.code == 0, done
    assert [each.config["lease"]["step"] for each in scenarios] == [60, 90]


@pytest.mark.parametrize(
    ("told", "says"),
    [
        # No sweep.
        (["sweep=3"], "sweep: KEY: [VALUE, ...] is needed, or a list of such mappings, found 3"),
        (["sweep=[{lease: [hourly]},3]"], "or a list of such mappings, found a list of 2"),
        (["sweep={lease: hourly}"], "sweep.lease: a list of values is needed, found 'hourly'"),
        (["sweep={lease.step: [[60]]}"], "sweep.lease.step: a list of 1, single values are needed"),
        # Of what is not swept, or not known.
        (["sweep={seed: [1,2]}"], "sweep.seed: only keys of cluster, workflow, workload, "),
        (["sweep={lease.stepp: [1]}"], "sweep: lease.stepp: unknown key, did you mean"),
        (["sweep={workload/sampling: [week_rare]}"], "sweep: Could not override 'workload/samp"),
        (
            [WEEK, "sweep={workload.arrivals.mean_gap: [1]}"],
            "sweep: workload.arrivals.mean_gap: unknown key, allowed: workload.sampling, ",
        ),
        # Twice.
        (["sweep={lease.step: [60,60.0]}"], "sweep: a point is given twice"),
        (["sweep={lease: [hourly]}", "lease=always"], "sweep: lease is given as well: leave one"),
        (
            [WEEK, "sweep={workload.sampling.ratio: [0.5]}", "workload.sampling={ratio: 0.7}"],
            "sweep: workload.sampling.ratio is given as well",
        ),
        # Others.
        (
            ["sweep=[{lease: [hourly]},{keep_alive: [lru]}]"],
            "sweep: lease are the keys of its first mapping, others need the same",
        ),
        (["sweep.lease.step=[60]"], "sweep.lease.step: unknown key, sweep has none"),
    ],
)
def test_what_is_no_sweep_gets_one_line(told: list[str], says: str, command: Command) -> None:
    refused(command(*TINY[:2], *told), says)


def test_what_has_no_effect_in_any_scenario_is_refused(command: Command) -> None:
    done = command("cluster=tiny", WEEK, "sweep={workflow: [tiny,study]}")
    refused(done, "workflow: without effect, workload is a trace")
    assert command("workflow=tiny", "sweep={workload: [tiny,azure_like]}").code == 0


def test_keys_are_told_apart_by_their_last_parts() -> None:
    told = short_keys(["cluster.server_types.large.server_count", "lease", "lease.step"])
    assert list(told.values()) == ["large.server_count", "lease", "lease.step"]
    alike = short_keys(["a.large.memory.size", "a.small.memory.size"])
    assert list(alike.values()) == ["large.memory.size", "small.memory.size"]
