"""A folder of configs of somebody else executes nothing, and what is wrong in it gets one line."""

import sys
import time
from pathlib import Path

import pytest

from run import config_file
from run.command import CONF, run

MAKES = "{_target_: os.mkdir, path: made}"
CALLS = f"# @package _global_\nhydra: {{callbacks: {{x: {MAKES}}}}}\n"
WRITES = "handlers: {x: {class: logging.FileHandler, filename: made, mode: w}}"
ENVIRONMENT = "runtime_env: {env_vars: {A: b}}"
TOO_MANY = "defaults: too many, twice as many at every level, or in a circle"
HARMFUL = {
    "a callback": (CALLS, "hydra.callbacks.x._target_"),
    "a log": (
        f"# @package _global_\nhydra: {{job_logging: {{version: 1, {WRITES}}}}}",
        "hydra.job_logging.version",
    ),
    "a variable": ("hydra: {job: {env_set: {A: b}}}", "hydra.job.env_set.A"),
    "a merged key": ("a: &a {hydra: {run: {dir: made}}}\n<<: *a", "hydra.run.dir"),
    "a package": ("# @package hydra.job.env_set\nA: b", "@package"),
    "a package as Hydra cuts it": ("# @package _global_xhydra\nrun: {dir: made}", "@package"),
    "a package in defaults": ("defaults: [/objective/cost@hydra.job.env_set]", "defaults.0"),
    "another option": (
        "# @package _global_\ndefaults: [override /hydra/job_logging: default]",
        "defaults.0.override /hydra/job_logging",
    ),
    "a Python object": (f"a: [{MAKES}]", "a.0._target_"),
    "an environment of Ray": (f"# @package ray\n{ENVIRONMENT}", "runtime_env.env_vars.A"),
    "an environment as a package": ("# @package ray.runtime_env\nenv_vars: {A: b}", "@package"),
    "a Ray cluster": ("# @package _global_\nray: {address: 'theirs:6379'}", "ray.address"),
    "a Ray cluster by a package": ("# @package ray\naddress: auto", "address"),
    "a Ray cluster by name": ("# @package ray\naddress: ${x}\nx: auto", "address"),
    "a checkpoint": ("# @package _global_\nresume: theirs", "resume"),
}


def write(name: str, content: str) -> Path:
    file = Path("theirs", name).absolute()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *told: str) -> str:
    """The one line that a command with the folder is refused with."""
    monkeypatch.setattr(sys, "argv", ["train.py", *told, "--config-dir", "theirs"])
    with pytest.raises(SystemExit) as caught:
        run(lambda config: pytest.fail("it ran"), "train", lambda config: None)
    assert caught.value.code == 2
    assert [path.name for path in Path().iterdir()] == ["theirs"]
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and len(error) < 400
    return error


@pytest.mark.parametrize("case", HARMFUL)
def test_what_runs_here_is_not_said_by_others(
    case: str,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    content, key = HARMFUL[case]
    file = write("objective/theirs.yaml", content)
    told = refused(monkeypatch, capsys, "objective=theirs")
    assert told.startswith(f"error: {file}: {key}: what runs here is typed or stands in conf/")


def test_nor_in_their_files_of_hydra(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write("hydra/launcher/theirs.yaml", "path: made")
    told = refused(monkeypatch, capsys, "hydra/launcher=theirs")
    assert told.startswith(f"error: {file}: its folder: what runs here")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("experiment/theirs", "# @package _global_\ndefaults: [override /ray: cluster]", []),
        ("ray/theirs", "defaults: [cluster]", []),
        ("ray/theirs", "defaults: [cluster]", ["ray.num_env_runners=1"]),
    ],
)
def test_nor_do_they_join_a_ray_cluster_by_our_files(
    name: str,
    content: str,
    told: list[str],
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(f"{name}.yaml", content)
    error = refused(monkeypatch, capsys, name.replace("/", "="), *told)
    assert error.startswith("error: ray.address: what runs here is typed or stands in conf/")


@pytest.mark.parametrize(
    ("told", "address"),
    [
        (["ray=cluster"], "auto"),
        (["ray=cluster", "ray.address=mine:6379"], "mine:6379"),
        (["ray.address=mine:6379"], "mine:6379"),
        (["ray=theirs", "ray.address=mine:6379"], "mine:6379"),
        (["ray=theirs"], None),
    ],
)
def test_a_ray_cluster_is_typed(
    told: list[str], address: str | None, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("ray/theirs.yaml", "defaults: [local]\nnum_env_runners: 3\naddress: null\n")
    monkeypatch.setattr(sys, "argv", ["train.py", "--config-dir", "theirs", *told])
    seen: list[str | None] = []
    run(lambda config: seen.append(config.ray.address), "train", lambda config: None)
    assert seen == [address]


def test_help_reads_their_files_no_less_strictly(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write("objective/theirs.yaml", HARMFUL["a log"][0])
    assert str(file) in refused(monkeypatch, capsys, "objective=theirs", "--help")


def test_a_way_past_the_look_at_files_ends_before_hydra_runs(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(config_file, "_check_harmless", lambda *told: None)
    write("objective/theirs.yaml", CALLS)
    told = refused(monkeypatch, capsys, "objective=theirs", "hydra.job.chdir=false")
    assert told.startswith("error: hydra.callbacks.x._target_: what runs here")


def test_what_is_typed_runs(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = (CONF / "ray" / "local.yaml").read_text()
    write("ray/mine.yaml", local.replace("num_env_runners: 0", "num_env_runners: 3"))
    told = ["ray=mine", "+ray.runtime_env.env_vars={A: b}", "hydra.run.dir=runs"]
    called = "+hydra.callbacks.x._target_=hydra.experimental.callbacks.PickleJobInfoCallback"
    monkeypatch.setattr(sys, "argv", ["train.py", "--config-dir", "theirs", *told, called])
    seen: list[tuple[int, dict[str, str]]] = []

    def main(config: dict) -> None:
        seen.append((config.ray.num_env_runners, dict(config.ray.runtime_env.env_vars)))

    run(main, "train", lambda config: None)
    assert seen == [(3, {"A": "b"})]
    assert list(elsewhere.rglob("runs/**/config.pickle"))  # which that callback leaves


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("x: !!bool maybe", "tag 'tag:yaml.org,2002:bool', none is allowed"),
        (r'x: "\U00110000"', "not YAML, chr() arg not in range"),
        (r'"\ud800": 1', r"'\ud800': half of a character"),
        (r'defaults: ["\ud800"]', r"'\ud800': half of a character"),
        ("5", "a mapping is needed, found '5'"),
        ("- 5", "a mapping is needed, found a list of 1"),
        ("x: " + "1:" * 250 + "1.5", "not YAML, "),
        ("# @package a b\nx: 1", "not YAML, Too many components"),
    ],
)
def test_a_file_that_is_none_is_named(
    content: str,
    says: str,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = write("objective/theirs.yaml", content)
    told = refused(monkeypatch, capsys, "objective=theirs")
    assert told.startswith(f"error: {file}: {says}")


def test_defaults_in_a_circle(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write("objective/itself.yaml", "defaults: [itself]\n")
    write("objective/one.yaml", "defaults: [two, balanced]\n")
    write("objective/two.yaml", "defaults: [cost, one]\n")
    for option, named in (("itself", ["itself"]), ("one", ["one", "two"])):
        told = refused(monkeypatch, capsys, f"objective={option}")
        files = [Path("theirs/objective", f"{each}.yaml").absolute() for each in named]
        assert told in [f"error: {file}: {TOO_MANY}\n" for file in files]


def test_defaults_that_double_at_every_level(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hydra would come to the last file 2^40 times."""
    files = [
        write(f"objective/level{n}.yaml", f"defaults: [level{n + 1}, level{n + 1}]\n")
        for n in range(40)
    ]
    write("objective/level40.yaml", "time_weight: 1.0\n")
    begun = time.process_time()
    told = refused(monkeypatch, capsys, "objective=level0")
    assert time.process_time() - begun < 10.0
    assert told in [f"error: {file}: {TOO_MANY}\n" for file in files]


@pytest.mark.parametrize("entries", [700 * ["cost"], [{"/objective": 700 * ["cost"]}]])
def test_defaults_of_far_too_many(
    entries: list[object],
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = write("objective/many.yaml", f"defaults: {entries}\n")
    assert refused(monkeypatch, capsys, "objective=many") == f"error: {file}: {TOO_MANY}\n"


def test_many_defaults_are_taken(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a hundred files once."""
    for n in range(100):
        write(f"objective/part{n}.yaml", f"time_weight: {n}.0\n")
    parts = ", ".join(f"part{n}" for n in range(100))
    write("objective/sum.yaml", f"defaults: [cost, {parts}]\n")
    monkeypatch.setattr(sys, "argv", ["train.py", "--config-dir", "theirs", "objective=sum"])
    seen: list[float] = []
    run(lambda config: seen.append(config.objective.time_weight), "train", lambda config: None)
    assert seen == [99.0]
