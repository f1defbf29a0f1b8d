"""How Python has to be started, looked at before anything else is imported."""

import os
import sys


def restart_with_same_hashes() -> None:
    """Starts Python anew where its hashes differ from run to run.

    RLlib goes through sets of policy names, so their hashes decide which network draws its first
    weights first: without `PYTHONHASHSEED` the same seed gives other numbers in every process.
    """
    if "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, sys.orig_argv)
