"""Arguments: text is told how to write and arrives unchanged."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from env.base.errors import InputError
from run.composing import as_text, expanded, of_resumed, parsed

SIGNS = "=@#[]{},()$~:;&!?*|<>.%-`\t\\'\"a \N{LATIN SMALL LETTER SHARP S}"
NASTY = st.lists(st.sampled_from(["${", "\\${", "null", "1", *SIGNS])).map("".join)
NASTY = NASTY.filter(lambda text: text != "???")
"""But for what OmegaConf takes for a value that is missing, whatever stands around it."""


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
