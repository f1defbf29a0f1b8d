"""Order `submission`: the order in which the simulator asks."""

from typing import Literal

from env.base.schema import Strict


class Submission(Strict):
    """By (submission time, workflow, function): nothing to choose, functions never queue up."""

    name: Literal["submission"]
