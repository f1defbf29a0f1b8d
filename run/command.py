"""How an entry point starts: all arguments are checked before it makes a run folder."""

import os
import shutil
import signal
import sys
from argparse import ArgumentError, ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, NamedTuple, NoReturn

import hydra
from hydra import initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from env.base.errors import InputError
from env.base.pipes import until_reader_leaves
from env.base.schema import as_line, short
from run import composing
from run.composing import TYPED, Scenario, one_line_errors, scenarios_of
from run.run_folder import ASSUMPTIONS, HELD, check_folder, claim, numbered, run_folder

PROJECT = Path(__file__).resolve().parent.parent
CONF = PROJECT / "conf"
PRINTING = (
    *("--help", "-h", "--hydra-help", "--version", "--cfg", "-c", "--info", "-i"),
    *("--shell-completion", "-sc"),
)
"""Hydra's own flags, with which nothing runs."""
STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)
"""Exit codes of a run that a signal stops."""
COMPILING = "compiling, once after it is installed or changed: takes a minute or two"


class Job(NamedTuple):
    """One run of a command.

    Attributes:
        composed: its configuration with the node `hydra`.
        config: the same in plain containers, without that node.
        scenarios: the points of its sweep; one where nothing is swept.
        folder: of its results.
    """

    composed: DictConfig
    config: dict[str, Any]
    scenarios: list[Scenario]
    folder: Path


Program = Callable[[Path], None]
"""Runs, and writes its results into a folder."""
Prepare = Callable[[Job], Program]
"""Makes the program of a job; raises `InputError` for a configuration that cannot run."""


@until_reader_leaves()
def run(prepare: Prepare, config_name: str) -> None:
    """Runs an entry point.

    Bad input of any kind gets one line on standard error and exit code 2; nothing is written. In a
    sweep (`-m`) every combination is checked before the first one runs.
    """
    if any(word.partition("=")[0] in PRINTING for word in sys.argv[1:]):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Hydra would tell of an error
        hydra.main(version_base="1.3", config_path=str(CONF), config_name=config_name)(prepare)()
        return
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            try:
                jobs = _jobs(_arguments(), config_name)
                programs = _prepared(jobs, prepare, config_name)
            except OSError as error:
                if error.filename is None:
                    raise
                # Some path among the arguments: in a folder that must not be read, or too long.
                raise InputError(f"'{error.filename}' cannot be read: {error.strerror}") from None
            for job, program in zip(jobs, programs, strict=True):
                HydraConfig.instance().set_config(job.composed)
                _run(job, program)
    except InputError as error:
        refuse(error)


def _prepared(jobs: Sequence[Job], prepare: Prepare, config_name: str) -> list[Program]:
    """The program of every job, once all arguments are checked."""
    from rich.console import Console

    # Something moves, on a terminal, while packages are imported and the world is made.
    with Console(stderr=True).status("reading what was typed", spinner="line"):
        from env.base.jit import nothing_compiled
        from run.effect import check_effect

        if nothing_compiled():
            print(COMPILING, file=sys.stderr, flush=True)
        programs = []
        for job in jobs:
            HydraConfig.instance().set_config(job.composed)
            programs.append(prepare(job))
        check_effect(config_name, [scenario for job in jobs for scenario in job.scenarios])
    return programs


def _run(job: Job, program: Program) -> None:
    """Runs a job in its folder, which is removed if the job leaves no result in it."""
    folder, config = job.folder, composing.without_hydra(job.composed)
    claim(folder, job.config.get("resume"))
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        OmegaConf.save(config, folder / TYPED.with_name("config.yaml"))
        OmegaConf.save(job.composed.hydra.overrides.task, folder / TYPED)
        until_reader_leaves()(program)(folder)
    except (KeyboardInterrupt, SystemExit, InputError) as error:
        code = getattr(error, "code", 128 + signal.SIGINT)
        # An error after the checks is one that only Ray knows, as of cores.
        if {path.name for path in folder.iterdir()} <= {".hydra", ASSUMPTIONS}:
            shutil.rmtree(folder)
            if not isinstance(error, InputError) and code in STOPPED:
                print("stopped", file=sys.stderr)
                raise SystemExit(code) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


@contextmanager
def stop_on_signals() -> Iterator[SimpleNamespace]:
    """In the block, Ctrl-C and SIGTERM ask to stop; a second one stops at once.

    Yields an object whose `asked` says whether a signal has come.
    """
    stop = SimpleNamespace(asked=False)

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True
        print("stopping soon, nothing is lost; once more stops at once", file=sys.stderr)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def refuse(error: InputError) -> NoReturn:
    """Prints the one line, and its notes below it, and leaves."""
    # Blanks stay as they are, for a word to paste may have some.
    print(f"error: {as_line(str(error))}", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        print(as_line(note), file=sys.stderr)
    raise SystemExit(2)


def _arguments() -> Namespace:
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--multirun", "-m", action="store_true")
    parser.add_argument("--config-dir", "-cd")
    parser.add_argument("overrides", nargs="*")
    try:
        arguments, others = parser.parse_known_intermixed_args()
    except ArgumentError as error:
        raise InputError(f"{error}, see --help") from None
    if others:
        raise InputError(f"{others[0]}: unknown, see --help")
    return arguments


def _jobs(arguments: Namespace, config_name: str) -> list[Job]:
    """The jobs of the command, composed; their folders can be written to.

    Raises:
        InputError: something among the arguments is wrong.
    """
    words = list(arguments.overrides)
    if arguments.config_dir is not None:
        folder = Path(os.path.realpath(arguments.config_dir))
        if not folder.is_dir():
            raise InputError(f"--config-dir: '{folder}' is not a folder")
        words.append(f"hydra.searchpath=[file://{folder}]")
    typed = composing.parsed(words, in_sweep=arguments.multirun)
    if arguments.multirun:
        each_words = composing.expanded(typed)
    else:
        each_words = [composing.of_resumed(typed, config_name == "train") + words]
    every = [composing.composed(config_name, job_words) for job_words in each_words]
    first = every[0][0]
    given, name, resume = first.hydra, first.name, first.get("resume")
    if not isinstance(resume, str | None):
        raise InputError(f"resume: the folder of a run is needed, found {short(resume)}")
    with one_line_errors():
        if arguments.multirun:
            resume = None
            of_all = [o for o in typed if not (o.is_sweep_override() or o.is_hydra_override())]
            shared = [str(override.input_line) for override in of_all]
            sweep = Path(given.sweep.dir or run_folder(name, shared, None, None))
            folders = [
                sweep / (job.hydra.sweep.subdir or numbered(str(number), job.hydra.overrides.task))
                for number, (job, _) in enumerate(every)
            ]
        else:
            has = HELD.get(config_name)
            folders = [Path(given.run.dir or run_folder(name, given.overrides.task, resume, has))]
    jobs = []
    for (job, overrides), folder in zip(every, folders, strict=True):
        check_folder(folder.absolute(), resume)
        config = composing.plain(job)
        jobs.append(Job(job, config, scenarios_of(config, overrides), folder.absolute()))
    return jobs


def _own_keys(config_name: str) -> str:
    """A primary configuration as it is written, without its groups and what is Hydra's."""
    written = (CONF / f"{config_name}.yaml").read_text()
    keys = written.partition("\n\n")[2].partition("\nhydra:\n")[0]
    return keys.replace("$", "$$")  # the help is a template


OmegaConf.register_new_resolver("own_keys", _own_keys, replace=True)
