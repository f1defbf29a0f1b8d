"""Commands print on any terminal, and end quietly when nobody reads on, as in `... | head`."""

import io
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def until_reader_leaves() -> Iterator[None]:
    """Around a command: when the reader of its output has gone, it exits as Unix tools do.

    Characters that its terminal does not have are printed as `?`. Unix tools are ended by SIGPIPE,
    for which shells have the code 141. That signal itself would also end whoever writes to a closed
    connection, such as Ray.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), select.POLLOUT)
        if not any(event & select.POLLERR for _, event in poll.poll(0)):
            raise  # its reader is still there
        # What is still to be written goes nowhere, or Python would complain of it when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + signal.SIGPIPE) from None
