"""What a file that declares a workflow imports. It says what calls what, and changes nothing.

`python -m report.workflow FILE.py` reads such files, and Caribou's, without executing them
(https://github.com/ubc-cirrus-lab/caribou).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Workflow:
    """A workflow, whose functions its methods annotate."""

    def __init__(self, name: str, version: str) -> None:
        pass

    def serverless_function(
        self,
        name: str | None = None,
        entry_point: bool = False,
        regions_and_providers: Mapping[str, Any] | None = None,
        environment_variables: Sequence[Mapping[str, str]] | None = None,
    ) -> Callable[[Function], Function]:
        """Declares a function, and gives it back unchanged.

        Args:
            name: left out, it is the name in Python.
            entry_point: whether users call it, which is so of one function.
            regions_and_providers: `allowed_regions` and `disallowed_regions` are lists of mappings
                with `provider` and `region`; `providers.NAME.config.memory` is in MB.
            environment_variables: not used here.
        """
        return lambda function: function

    def invoke_serverless_function(
        self, function: Callable[..., Any], payload: Any = None, condition: bool | float = True
    ) -> None:
        """Calls a function once the caller ends, if a condition holds; a number: how probable."""

    def get_predecessor_data(self) -> list[Any]:
        """Makes the caller a synchronization node, which waits for all that may call it."""
        return []
