"""Arguments: text is told how to write and arrives unchanged; empty mappings mean what they say."""

import sys
from pathlib import Path

import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from run.arguments import as_text, parsed
from run.command import run

NASTY = (
    st.lists(
        st.sampled_from(
            [
                "${",
                "\\${",
                "null",
                "1",
                *"=@#[]{},()$~:;&!?*|<>.%-`\t\\'\"a \N{LATIN SMALL LETTER SHARP S}",
            ]
        )
    )
    .map("".join)
    .filter(lambda text: text != "???")
)
"""But for what OmegaConf takes for a value that is missing, whatever stands around it."""


@given(NASTY)
def test_text_that_is_pasted_arrives_unchanged(text: str) -> None:
    parser = OverridesParser.create()
    word = as_text("workflow.path", text)
    (((in_sweep,),),) = BasicSweeper.split_arguments(parsed(parser, [word]), max_batch_size=None)
    for argument in (word, in_sweep):
        (override,) = parsed(parser, [argument])
        config = OmegaConf.create({})
        OmegaConf.update(config, override.key_or_group, override.value())
        assert config.workflow.path == text


@pytest.mark.parametrize(
    "told",
    [
        ["workload.tenants={}", "+workload.tenants.a=1", "+workload.tenants.b=2"],
        ["workload.tenants={}", "++workload.tenants={a: 1, b: 2}"],
        ["~workload.tenants", "+workload.tenants={}", "++workload.tenants={a: 1, b: 2}"],
    ],
)
def test_nothing_is_a_start_for_keys_that_follow(
    told: list[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["evaluate.py", *told])
    seen: list[dict[str, float]] = []
    run(lambda config: seen.append(dict(config.workload.tenants)), "evaluate", lambda config: None)
    assert seen == [{"a": 1, "b": 2}]
