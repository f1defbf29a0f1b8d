"""Text that Hydra cannot read is told how to write: pasted into a shell, it arrives unchanged."""

import shlex

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from run.arguments import as_text, parsed

NASTY = st.lists(
    st.sampled_from(
        [
            "${",
            "\\${",
            "null",
            "1",
            *"=@#[]{},()$~:;&!?*|<>.%-`\t\\'\"a \N{LATIN SMALL LETTER SHARP S}",
        ]
    )
).map("".join)


@given(NASTY)
def test_text_that_is_pasted_arrives_unchanged(text: str) -> None:
    parser = OverridesParser.create()
    (word,) = shlex.split(as_text("workflow.path", text))
    (((in_sweep,),),) = BasicSweeper.split_arguments(parsed(parser, [word]), max_batch_size=None)
    for argument in (word, in_sweep):
        (override,) = parsed(parser, [argument])
        config = OmegaConf.create({})
        OmegaConf.update(config, override.key_or_group, override.value())
        assert config.workflow.path == text
