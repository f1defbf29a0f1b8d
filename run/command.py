"""How an entry point starts: everything it is told is checked before Hydra makes a run folder."""

import errno
import os
import shutil
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import Any, NoReturn, Self

import hydra
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.utils import get_args_parser
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from env.base.errors import InputError
from env.base.jit import before_compiling
from env.base.pipes import until_reader_leaves
from env.base.schema import as_line, one_line
from run.arguments import check_emptied, of_resumed, parsed
from run.effect import check_effect
from run.help import help_text
from run.interpolation import check_named, copied
from run.names import check_names
from run.next_command import PROJECT
from run.run_folder import ASSUMPTIONS, RUN_FILES, check_run_name
from run.sweep import scenarios_of

CONF = PROJECT / "conf"
HYDRAS_BYTES = 100_000
"""What Hydra's own files of a run take at most."""
PRINTING = ("hydra_help", "cfg", "info")
"""Flags with which nothing runs: Hydra composes the configuration and prints it."""

COMPILING = "compiling {}, once after it is installed or changed: takes a minute or two"


@until_reader_leaves()
def run(
    main: Callable[[DictConfig], None], config_name: str, check: Callable[[DictConfig], None]
) -> None:
    """Runs an entry point under Hydra.

    Bad input of any kind gets one line on standard error and exit code 2; nothing is written. In a
    sweep (`-m`) every combination is checked before the first one runs.

    Args:
        main: the program; gets the composed configuration.
        config_name: its primary configuration in conf/.
        check: raises `InputError` for a configuration that `main` cannot run.
    """
    fix_python()
    before_compiling(lambda module: print(COMPILING.format(module), file=sys.stderr, flush=True))
    try:
        # Something moves, on a terminal, while packages are imported and the world is made.
        with Console(stderr=True).status("reading what was typed", spinner="line"):
            _check(config_name, check)
    except InputError as error:
        refuse(error)
    except OSError as error:
        if error.filename is None:
            raise
        # Some path among the arguments: in a folder that must not be read, or too long.
        refuse(InputError(f"'{error.filename}' cannot be read: {error.strerror}"))

    @wraps(main)
    def guarded(config: DictConfig) -> None:
        folder = Path(HydraConfig.get().runtime.output_dir)
        try:
            _claim(folder, config)
        except InputError as error:
            refuse(error)
        before = signal.signal(signal.SIGTERM, _leave)
        threading.excepthook = _tell_of_thread
        try:
            until_reader_leaves()(main)(config)
        except (KeyboardInterrupt, _Stopped) as error:
            if not _forget(folder):
                raise
            print("stopped", file=sys.stderr)
            code = error.code if isinstance(error, SystemExit) else 128 + signal.SIGINT
            raise SystemExit(code) from None
        except SystemExit:
            _forget(folder)
            raise
        except Exception as error:
            full = _full_disk(error)
            if full is not None:
                raise SystemExit(
                    f"error: '{folder}': {full}; what is complete stays{_go_on(folder, config)}"
                ) from None
            if not isinstance(error, InputError):
                raise
            # Only Ray knows some things, such as how many cores it has.
            _forget(folder)
            refuse(error)
        finally:
            signal.signal(signal.SIGTERM, before)
            threading.excepthook = threading.__excepthook__

    hydra.main(version_base="1.3", config_path=str(CONF), config_name=config_name)(guarded)()


def _check(config_name: str, check: Callable[[DictConfig], None]) -> None:
    """Checks every job of the command; prints the help instead if that is asked for."""
    arguments = _arguments()
    if arguments.shell_completion:
        return
    prints = any(getattr(arguments, name) for name in PRINTING)
    if prints:  # Hydra would tell of a reader who has left as of an error
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    jobs = []
    for config in _compositions(arguments, config_name):
        if arguments.help:
            print(help_text(config_name, config))
            raise SystemExit
        HydraConfig.instance().set_config(config)
        with open_dict(config):
            del config["hydra"]
        if not prints:
            check(config)
            used = copied(config)  # elsewhere, whatever the key itself does
            for scenario in scenarios_of(plain(config)):
                own = [o for o in scenario.overrides if o.key_or_group not in used]
                jobs.append((scenario.config, own))
    check_effect(config_name, jobs)


def _claim(folder: Path, config: DictConfig) -> None:
    """Takes the folder for this run, of several that begin there in the same second for one.

    Raises:
        InputError: another run has it, and this one does not go on with that.
    """
    claim = folder / ".hydra" / "claimed"
    claim.parent.mkdir(exist_ok=True)
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        if not _resumes(folder, config):
            raise InputError(f"'{folder}' has a run already: name a new folder") from None


def _resumes(folder: Path, config: DictConfig) -> bool:
    resumed = config.get("resume")
    return resumed is not None and Path(resumed).absolute() == folder.absolute()


def _forget(folder: Path) -> bool:
    """Removes the folder of a run that has left no result."""
    nothing = {path.name for path in folder.iterdir()} <= {".hydra", ASSUMPTIONS}
    if nothing:
        shutil.rmtree(folder)
    return nothing


def _full_disk(error: BaseException | None) -> str | None:
    """What the system calls it if the disk or the user's share of it is full, else None.

    Remote learners write for themselves: Ray wraps their errors.
    """
    seen: list[BaseException] = []
    while error is not None and error not in seen:  # what Ray wraps may go in a circle
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return os.strerror(error.errno)
        seen.append(error)
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__
    return None


def _go_on(folder: Path, config: DictConfig) -> str:
    """How to go on with the run of the folder, if there is something to go on with."""
    left = [folder / "run.json", *folder.glob("checkpoints/*/run.json")]
    resumable = "resume" in config and any(path.exists() for path in left)
    return f", go on with resume={folder}" if resumable else ""


def _tell_of_thread(args: threading.ExceptHookArgs) -> None:
    """Says what ended a thread, but for a full disk: that of TensorBoard's ends the run as well."""
    if _full_disk(args.exc_value) is None:
        threading.__excepthook__(args)


def fix_python() -> None:
    """Starts Python anew with `PYTHONHASHSEED=0`, unless it is set, and with files in UTF-8.

    RLlib goes through sets of policy names, so their hashes decide which network draws its first
    weights first: without this the same seed gives other numbers in every process.
    """
    if "PYTHONHASHSEED" not in os.environ:
        os.environ |= {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
        os.environ["PYTHONIOENCODING"] = f"{sys.stdout.encoding}:replace"  # the terminal's own
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


class _Stopped(SystemExit):
    """A signal ends the program."""


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise _Stopped(128 + number)


class StopOnSignals:
    """Within it, Ctrl-C and SIGTERM ask to stop; a second one stops at once.

    Attributes:
        asked: whether a signal has come.
    """

    asked = False

    def __enter__(self) -> Self:
        self._before = {
            number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("stopping soon, nothing is lost; once more stops at once", file=sys.stderr)


def refuse(error: InputError) -> NoReturn:
    """Prints the one line, and its notes below it, and leaves."""
    # Blanks stay as they are, for a word to paste may have some.
    print(f"error: {as_line(str(error))}", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        print(as_line(note), file=sys.stderr)
    raise SystemExit(2)


def plain(config: DictConfig) -> dict[str, Any]:
    """A composed configuration as plain containers, which is what Ray and pydantic take.

    Raises:
        InputError: an interpolation does not resolve.
    """
    try:
        # Values that are missing stay `???`: `validated` says where.
        found = OmegaConf.to_container(config, resolve=True)
    except OmegaConfBaseException as error:
        raise InputError(_one_line(error)) from None
    assert isinstance(found, dict)
    return {str(key): value for key, value in found.items()}


def _arguments() -> Namespace:
    def error(message: str) -> NoReturn:
        raise InputError(f"{message}, see --help")

    parser = get_args_parser()
    parser.error = error  # type: ignore[method-assign]
    arguments = parser.parse_args()
    for name in ("config_path", "config_name", "experimental_rerun"):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name.replace('_', '-')}: not supported, use --config-dir")
    return arguments


def _compositions(arguments: Namespace, config_name: str) -> Iterator[DictConfig]:
    """The configuration of every job of the command, with the node `hydra`."""
    overrides = list(arguments.overrides)
    if arguments.config_dir is not None:
        folder = Path(os.path.realpath(arguments.config_dir))
        if not folder.is_dir():
            raise InputError(f"--config-dir: '{folder}' is not a folder")
        overrides.append(f"hydra.searchpath=[file://{folder}]")
    with _conf() as loader:
        parser = OverridesParser.create(config_loader=loader)
        given = parsed(parser, overrides, in_sweep=arguments.multirun)
        jobs = [overrides]
        if arguments.multirun:
            (jobs,) = BasicSweeper.split_arguments(given, max_batch_size=None)
        elif overrides:
            at = sys.argv.index(overrides[0])  # Hydra reads them there
            sys.argv[at:at] = told = of_resumed(parser, given, config_name == "train")
            jobs = [told + overrides]
        for job in jobs:
            config, _ = _composition(loader, config_name, job)
            _check_folder("sweep" if arguments.multirun else "run", config)
            yield config


def composed(config_name: str, overrides: Sequence[str]) -> tuple[DictConfig, list[Override]]:
    """A configuration outside a command, without the node `hydra`, and the overrides as read.

    Args:
        config_name: a primary configuration in conf/.
        overrides: as on a command line.

    Raises:
        InputError: an override is none, or names what is not there.
    """
    with _conf() as loader:
        config, given = _composition(loader, config_name, list(overrides))
    with open_dict(config):
        del config["hydra"]
    return config, given


@contextmanager
def _conf() -> Iterator[ConfigLoader]:
    """Within it conf/ can be composed, and what Hydra finds wrong is one line."""
    try:
        with initialize_config_dir(config_dir=str(CONF), version_base="1.3"):
            yield GlobalHydra.instance().config_loader()
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(_one_line(error)) from None


def _composition(
    loader: ConfigLoader, config_name: str, overrides: list[str]
) -> tuple[DictConfig, list[Override]]:
    """A configuration, with the node `hydra`, and the overrides as read."""
    given = parsed(OverridesParser.create(config_loader=loader), overrides)
    check_names(loader, config_name, given)
    config = compose(config_name, overrides=overrides, return_hydra_config=True)
    check_named(config)
    check_emptied(given, config)
    return config, given


def _check_folder(kind: str, config: DictConfig) -> None:
    """Refuses a folder of results that cannot be made or written to, or that has others.

    Results of two runs in one folder would be taken for those of one.
    """
    check_run_name(config.name)
    if not config.hydra[kind].dir:
        raise InputError(f"hydra.{kind}.dir: '' is no name of a folder")
    folder = Path(config.hydra[kind].dir).absolute()
    if config.name is not None and config.name not in folder.name:
        raise InputError(f"name: no effect, since results go to '{folder}'")
    there = folder
    try:
        while not there.exists():
            there = there.parent
        # Permissions do not tell: /proc has them and takes nothing, and the disk may be full.
        with TemporaryFile(dir=there) as file:
            file.write(bytes(HYDRAS_BYTES))
    except OSError as error:
        raise InputError(
            f"hydra.{kind}.dir: '{folder}': '{there}' is no folder to write to: {error.strerror}"
        ) from None
    left = {"run": RUN_FILES, "sweep": ("multirun.yaml",)}[kind]
    begun = any((folder / name).exists() for name in left)
    if begun and not _resumes(folder, config):
        raise InputError(f"hydra.{kind}.dir: '{folder}' has a run already: name a new folder")


def _one_line(error: BaseException) -> str:
    """What an error of Hydra says, and what of OmegaConf lies behind it."""
    if str(error).startswith("Cannot merge DictConfig with ListConfig"):
        return "a list is needed, found a mapping"
    behind = (
        f": {_one_line(error.__cause__)}"
        if isinstance(error.__cause__, OmegaConfBaseException)
        else ""
    )
    return one_line(str(error)) + behind
