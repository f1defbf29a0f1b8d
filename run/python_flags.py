"""How Python has to be started, looked at before anything else is imported."""

import locale
import os
import sys


def restart(*, same_hashes: bool = False) -> None:
    """Starts Python anew where its files are not in UTF-8, or its hashes differ from run to run.

    RLlib goes through sets of policy names, so their hashes decide which network draws its first
    weights first: without `PYTHONHASHSEED` the same seed gives other numbers in every process.

    Args:
        same_hashes: whether hashes matter.
    """
    needed = {}
    if same_hashes and "PYTHONHASHSEED" not in os.environ:
        needed["PYTHONHASHSEED"] = "0"
    if locale.getencoding().lower() != "utf-8" and not sys.flags.utf8_mode:
        needed["PYTHONUTF8"] = "1"
        needed["PYTHONIOENCODING"] = f"{sys.stdout.encoding}:replace"  # the terminal's own
    if needed:
        os.environ |= needed
        os.execv(sys.executable, sys.orig_argv)
