"""Files of conf/baseline that cannot be used: one line each, with the file and the key."""

from pathlib import Path

import pytest

from agents import baseline
from agents.baseline import make_baselines
from env.sim.errors import InputError

PLACED = "order: {name: submission}\nmemory: {name: required}\nplacement: "
GREEDY = PLACED + "{name: greedy_objective, weights: "
BAD: dict[str, tuple[str | bytes, str]] = {
    "broken": ("placement: [", "not YAML"),
    "latin": (b"# caf\xe9\n", "not YAML"),
    "listed": ("- random\n", "a mapping is needed"),
    "empty": ("", "order: missing"),
    "unplaced": ("order: {name: submission}\nmemory: {name: required}\n", "placement: missing"),
    "misspelt": (PLACED + "{name: randm}", "placement.name: 'randm' is unknown, did you mean"),
    "added": (PLACED + "{name: random}\nspeed: 1", "speed: unknown key"),
    "weighed": (GREEDY + "{finish: 1, delay: 1, rnt: 1}}", "did you mean 'rent'?"),
    "nan": (GREEDY + "{finish: .nan, delay: 1, rent: 1}}", "placement.weights.finish"),
    "negative": (GREEDY + "{finish: 1, delay: -1, rent: 1}}", "placement.weights.delay"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_gets_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, says = BAD[name]
    (tmp_path / "baseline").mkdir()
    file = tmp_path / "baseline" / f"{name}.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setattr(baseline, "CONF", tmp_path)
    with pytest.raises(InputError) as caught:
        make_baselines([name])
    told = str(caught.value)
    assert told.startswith(f"conf/baseline/{name}.yaml: ")
    assert says in told
    assert "\n" not in told
