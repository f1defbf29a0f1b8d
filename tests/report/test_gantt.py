"""The Gantt picture shows the phases and the workflows of an episode."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from env.sim.declared.rules import Lease, Rules
from env.sim.declared.server_changes import ListedChanges, Recovery
from report import palette
from report.gantt import main
from tests.episodes import GOLDEN, begun, written
from tests.recorded_worlds import CLUSTER, DIAMOND, played, world

MEMORY_WAITING = GOLDEN[3]
EVENTS = [
    {"time": 12.0, "server": "small 0", "action": "drain", "notice": 10.0},
    {"time": 5.0, "server": "large 0", "action": "fail", "repair": 10.0},
]


def pixels_of(picture: np.ndarray, colour: str) -> int:
    """How many pixels have a colour, which may let white through."""
    *solid, alpha = ImageColor.getcolor(colour, "RGBA")
    wanted = 255 + (np.array(solid) - 255) * alpha / 255
    return int((np.abs(picture[..., :3] - wanted) < 1).all(axis=2).sum())


def test_every_phase_and_workflow_is_there(tmp_path: Path) -> None:
    """Four workflows; two containers wait for a cold start, two for memory, none for data."""
    target = tmp_path / "gantt.png"
    main([str(MEMORY_WAITING), "-o", str(target)])
    picture = np.asarray(Image.open(target))
    legend = {name: pixels_of(picture[-60:], colour) for name, colour in palette.PHASES.items()}
    drawn = {name: pixels_of(picture[:-60], colour) for name, colour in palette.PHASES.items()}
    assert min(legend.values()) > 100
    assert drawn["server cold start"] > 500
    assert drawn["waiting"] > 500
    assert drawn["transfer"] == 0
    for colour in palette.SERIES[:4]:
        assert pixels_of(picture, colour) > 1000


def test_a_world_with_a_queue_and_warm_containers(tmp_path: Path) -> None:
    target = tmp_path / "gantt.png"
    episode = written(world("rr", keep_alive="fixed"), tmp_path / "episode.json")
    main([str(episode), "-o", str(target)])
    picture = np.asarray(Image.open(target))
    for colour in (palette.WARM, *palette.PHASES.values()):
        assert pixels_of(picture[-60:], colour) > 100
    for phase in ("server cold start", "container cold start"):
        assert pixels_of(picture[:-60], palette.PHASES[phase]) > 100


def test_servers_that_drain_and_go_down_and_who_is_killed(tmp_path: Path) -> None:
    failing = Rules(
        lease=Lease(kind="always", charged=False),
        changes=ListedChanges.model_validate({"kind": "listed", "events": EVENTS}),
        recovery=Recovery(),
    )
    env = played(begun([0.0, 0.0], [DIAMOND] * 2, CLUSTER, record=True, rules=failing))
    target = tmp_path / "gantt.png"
    main([str(written(env, tmp_path / "episode.json")), "-o", str(target)])
    picture = np.asarray(Image.open(target))
    for name, least in (("draining", 1000), ("down", 1000), ("killed", 100)):
        assert pixels_of(picture[:-90], palette.CHANGES[name]) > least


def test_odd_names_are_shown_and_say_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    document = json.loads(MEMORY_WAITING.read_text())
    for name in ("$x_{$", "\x1b[31m\n" * 1000, "\N{GRINNING FACE} \u4e2d"):
        (tmp_path / "odd.json").write_text(json.dumps({**document, "name": name}))
        main([str(tmp_path / "odd.json"), "-o", str(tmp_path / "gantt.png")])
    assert capsys.readouterr().err == "" and not recwarn.list


def test_the_episode_and_a_device_are_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    episode, pipe = tmp_path / "episode.json", tmp_path / "pipe"
    episode.write_bytes(MEMORY_WAITING.read_bytes())
    os.mkfifo(pipe)
    (tmp_path / "link.png").symlink_to(episode)
    for target, says in (
        (episode, "is the episode file itself"),
        (tmp_path / "link.png", "is the episode file itself"),
        (pipe, "not a regular file"),
        (tmp_path, "cannot be written: Is a directory"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main([str(episode), "-o", str(target)])
        error = capsys.readouterr().err
        assert says in error and error.count("\n") == 1
    assert episode.read_bytes() == MEMORY_WAITING.read_bytes() and pipe.is_fifo()
    assert len(list(tmp_path.iterdir())) == 3
