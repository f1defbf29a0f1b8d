"""Order `workflows` within a tenant: by the tickets that it gives its workflows."""

from typing import Literal

from env.sim.declared.ordering import ByWorkflow


class Workflows(ByWorkflow):
    """As `ByWorkflow`."""

    name: Literal["workflows"] = "workflows"
