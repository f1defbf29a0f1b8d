"""The command that prints, writes and draws the logical DAG of a workflow in code."""

from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from PIL import Image, ImageColor

from env.base.schema import validated
from env.workloads.templates import WorkflowConfig, template_pools
from report.palette import SERIES
from report.workflow import main
from run.command import CONF

CODE = """
from env.workloads.code.annotations import Workflow

workflow = Workflow("thumbnails", "0.0.1")

@workflow.serverless_function(name="Start", entry_point=True)
def start(event):
    workflow.invoke_serverless_function(join, {}, event["alone"])
    workflow.invoke_serverless_function(resize, {}, 0.25)

@workflow.serverless_function(name="Resize")
def resize(event):
    workflow.invoke_serverless_function(join, {})

@workflow.serverless_function(name="Join")
def join(event):
    workflow.get_predecessor_data()
"""
CONFIGURATION = """
workflow_name: thumbnails
workflow_version: 0.0.1
home_region: {provider: aws, region: us-east-1}
functions:
  Start: {runtime: 2.0, memory: 100, parallelism: 1}
  Resize: {runtime: 3.0, memory: 200, parallelism: 1}
  Join: {runtime: 4.0, memory: 300, parallelism: 2}
calls: [{from: Start, to: Resize, bytes: 1000}]
"""
PRINTED = """\
thumbnails 0.0.1
Start:entry_point:0 (initial)
  -> Join:sync:2, probability 0.5 (assumed)
  -> Resize:Start_0_1:1, probability 0.25
Resize:Start_0_1:1 (intermediate)
  -> Join:sync:2
Join:sync:2 (synchronization)
"""


@pytest.fixture
def code(tmp_path: Path) -> str:
    """thumbnails.py without a configuration."""
    (tmp_path / "thumbnails.py").write_text(CODE)
    return str(tmp_path / "thumbnails.py")


def test_the_file_is_an_option_of_the_group_workflow(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yml").write_text(CONFIGURATION)
    target = tmp_path / "mine" / "workflow" / "thumbnails.yaml"
    main([code, "-o", str(target)])
    assert capsys.readouterr().out == f"{PRINTED}written: {target}\n"
    with initialize_config_dir(str(CONF), version_base=None):
        search = f"hydra.searchpath=[file://{tmp_path}/mine]"
        told = OmegaConf.to_container(compose(overrides=["+workflow=thumbnails", search]))
    config = validated(WorkflowConfig, told["workflow"], "workflow")  # type: ignore[index, call-overload]
    ((template,), *_) = (pool.templates for pool in template_pools(config, 10).values())
    assert template.name == "thumbnails-0.0.1"
    assert template.function_names == ("Start:entry_point:0", "Resize:Start_0_1:1", "Join:sync:2")
    assert template.computation.tolist() == [20, 30, 80]
    assert template.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert template.data_bytes.tolist() == [1000, 0, 0]
    assert template.probability.tolist() == [0.25, 0.5, 1.0]


def test_the_dag_is_printed_and_drawn_without_a_configuration(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([code, "--draw", str(tmp_path / "dag.png")])
    assert capsys.readouterr().out == f"{PRINTED}written: {tmp_path}/dag.png\n"
    picture = np.asarray(Image.open(tmp_path / "dag.png"))[..., :3]
    for colour in SERIES[:3]:
        assert (picture == ImageColor.getrgb(colour)).all(axis=2).sum() > 300


def test_bad_code_gets_a_line_for_each_fault_and_writes_nothing(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(code).write_text(CODE.replace("0.25", "2.5").replace("join, {})", "joined, {})"))
    with pytest.raises(SystemExit, match="2"):
        main([code, "-o", str(tmp_path / "a.yaml"), "--draw", str(tmp_path / "a.png")])
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[-2] for line in lines] == [f"{code}:9", f"{code}:13"]
    with pytest.raises(SystemExit, match="2"):
        main([code, "-o", code])
    assert capsys.readouterr().err == f"error: {code}: a name that ends in .yaml is needed\n"
    assert [path.name for path in tmp_path.iterdir()] == ["thumbnails.py"]


def test_a_file_needs_the_numbers_of_all_functions(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["-o", str(tmp_path / "a.yaml")]
    with pytest.raises(SystemExit, match="2"):
        main([code, *output])
    (tmp_path / "config.yml").write_text(CONFIGURATION.replace("  Join: {", "  # Join: {"))
    with pytest.raises(SystemExit, match="2"):
        main([code, *output])
    assert capsys.readouterr().err == (
        f"error: {tmp_path}/config.yml: no such file\n"
        f"error: {tmp_path}/config.yml: functions.Join: missing, required\n"
    )
    assert not (tmp_path / "a.yaml").exists()
