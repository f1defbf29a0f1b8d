"""Policies on disk: weights as safetensors, JSON beside them. Loading one executes nothing.

A folder holds `policy.json` and one `<policy>.safetensors` for every policy of the run, with the
weights of the policy network alone; the critic stays in the run's checkpoints.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from pydantic import AfterValidator, Field, model_validator
from safetensors import SafetensorError
from safetensors.numpy import load, save

from agents.learned.network import PolicySizes, SetPolicyNetwork
from env.base.errors import InputError
from env.base.files import MOST_BYTES, folder_written_whole, parse_json, read_bytes
from env.base.schema import Strict, distinct, listed, one_line, validated
from env.learn.kind import Agent
from env.learn.layouts import Layout
from env.learn.workflow_window import FUNCTION_FEATURES

DESCRIPTION = "policy.json"
WEIGHTS = ".safetensors"
DAMAGES = (SafetensorError, TypeError, AttributeError, LookupError, ValueError, RuntimeError)
"""What safetensors raises, for number formats that numpy does not have too, and, the last one,
torch for weights that a network does not have."""
SHARED_KINDS = ("server", "tenant", "scaler")
"""Kinds of which there may be several agents: `server_<type>`, `tenant_<name>`, `scaler_<type>`."""
ALL = slice(None)
MOST_DESCRIPTION_BYTES = 10_000_000

Names = Annotated[tuple[str, ...], AfterValidator(distinct)]
PolicyName = Annotated[str, Field(pattern=r"^[^/\p{C}]+$")]
"""Of a file: printable characters but /."""


class FeatureNames(Strict):
    """Names of what one kind of agent sees, in order."""

    context: Names
    items: Names
    functions: Names = ()


class PolicyDescription(Strict):
    """`policy.json`.

    Attributes:
        format: of the folder.
        layout: of the agents (conf/agents).
        memory_tiers: ratios of memory_req, in the order of the choices.
        features: by kind of agent: memory, placer, server, queue, tenant.
        networks: by policy.
        objective: what J was made of.
        config: the composed configuration of the run.
        versions: of the packages it was trained with.
    """

    format: Literal[1]
    layout: str
    memory_tiers: tuple[float, ...]
    features: dict[str, FeatureNames]
    networks: Annotated[dict[PolicyName, PolicySizes], Field(min_length=1, max_length=1000)]
    objective: dict[str, float]
    config: dict[str, Any]
    versions: dict[str, str]

    @model_validator(mode="after")
    def _sizes_are_those_of_the_features(self) -> Self:
        for name, sizes in self.networks.items():
            names = self.features.get(kind_of(name))
            counts = names and (len(names.context), len(names.items), len(names.functions))
            shown = (sizes.context, sizes.item, sizes.function)
            if shown != counts:
                raise ValueError(
                    f"networks.{name}: context, item and function {shown} are not the numbers of "
                    f"feature names, {counts}"
                )
        return self


@dataclass(frozen=True)
class LearnedPolicy:
    """A trained policy as a decision maker: an observation in, the likeliest action out.

    Attributes:
        description: its `policy.json`.
        networks: by policy.
        sha256: hash of its files.
        columns: of what an environment shows, those that each kind of agent reads, by part.
    """

    description: PolicyDescription
    networks: Mapping[str, SetPolicyNetwork]
    sha256: str
    columns: Mapping[str, Mapping[str, list[int]]] = field(default_factory=dict)

    def fitted(self, layout: Layout, where: str = "policy") -> "LearnedPolicy":
        """This policy for an environment, whose observations it reads by feature name.

        Node counts, server types and their names may differ from those trained on, and the
        environment may have features that came later.

        Args:
            layout: of the environment.
            where: what to call the policy in an error, such as its path.

        Raises:
            InputError: layout or memory tiers differ, feature names are missing, or an agent has no
                network, or one with another number of choices or bids.
        """
        trained, features = self.description, features_of(layout.agents)
        stored = {"layout": trained.layout, "memory_tiers": list(trained.memory_tiers)}
        here = {"layout": layout.config.layout, "memory_tiers": list(layout.tiers)}
        for key, other in here.items():
            if stored[key] != other:
                raise InputError(
                    f"{where}: trained with agents.{key} {stored[key]}, the environment has {other}"
                )
        columns: dict[str, dict[str, list[int]]] = {}
        for kind, names in trained.features.items():
            columns[kind] = {}
            for part, needed in names:
                present = list(features.get(kind, {}).get(part, ()))
                if missing := [name for name in needed if name not in present]:
                    raise InputError(
                        f"{where}: agent {kind} needs the {part} features {listed(missing)}, "
                        f"which the environment does not have"
                    )
                columns[kind][part] = [present.index(name) for name in needed]
        for agent in layout.agents.values():
            shapes = {
                (sizes.choices, sizes.bids)
                for name, sizes in trained.networks.items()
                if kind_of(name) == agent.kind
            }
            if shapes != {(agent.choices, agent.bids)}:
                raise InputError(
                    f"{where}: networks: choices and bids of the agent {agent.name} are "
                    f"{agent.choices} and {agent.bids}, found {sorted(shapes) or 'none'}"
                )
        return replace(self, columns=columns)

    def act(self, agent: str, observation: Mapping[str, np.ndarray]) -> int | np.ndarray:
        """The action with the highest probability.

        Args:
            agent: its id: `placer`, `memory`, `queue`, `server_<type>` or `tenant_<name>`.
            observation: `context` (C,), `items` (M, I) and `mask` (B + M*K,), with a window of the
                workflow `functions` (F, G) and `edges` (F, F); M and F may be any.

        Returns:
            The choice, or for agents that bid an array of bid and choice.
        """
        kind = kind_of(agent)
        # Its own policy, the one that its kind shares, or, of a server type or tenant that was
        # never met, the first one of its kind, so that no other cluster makes a policy unfit.
        names = (agent, kind, *sorted(self.networks))
        network = next(
            self.networks[name] for name in names if name in self.networks and kind_of(name) == kind
        )
        columns = self.columns.get(kind, {})
        seen = {
            part: torch.from_numpy(np.asarray(array, np.float32)[..., columns.get(part, ALL)])[None]
            for part, array in observation.items()
        }
        with torch.inference_mode():
            scores = network(seen)[0].numpy()
        if bids := network.sizes.bids:
            return np.array([scores[:bids].argmax(), scores[bids:].argmax()])
        return int(scores.argmax())


def features_of(agents: Mapping[str, Agent]) -> dict[str, dict[str, tuple[str, ...]]]:
    """The names of what each kind of agent sees, see `FeatureNames`."""
    return {
        agent.kind: {
            "context": agent.context_features,
            "items": agent.item_features,
            "functions": FUNCTION_FEATURES if agent.window else (),
        }
        for agent in agents.values()
    }


def kind_of(agent: str) -> str:
    """`memory`, `placer`, `queue`, `server` or `tenant`."""
    return agent.split("_")[0]


def policy_of(agent: str, share_type_policy: bool) -> str:
    """The policy (RLlib: module) an agent acts by: its own, or the one of all of its kind."""
    kind = kind_of(agent)
    return kind if share_type_policy and kind in SHARED_KINDS else agent


def save_policy(folder: Path, networks: Mapping[str, SetPolicyNetwork], **about: Any) -> None:
    """Writes a policy folder; one that is there is replaced as a whole.

    `about` is features, layout, memory_tiers, objective and config of `PolicyDescription`.
    """
    sizes = {name: network.sizes for name, network in networks.items()}
    versions = {package: version(package) for package in ("numpy", "ray", "torch")}
    description = PolicyDescription(format=1, networks=sizes, versions=versions, **about)
    with folder_written_whole(folder) as fresh:
        fresh.mkdir(parents=True)
        for name, network in networks.items():
            # safetensors' own files could be read by nobody else, whatever the umask.
            weights = {key: tensor.numpy() for key, tensor in network.state_dict().items()}
            (fresh / f"{name}{WEIGHTS}").write_bytes(save(weights))
        (fresh / DESCRIPTION).write_text(json.dumps(description.model_dump(), indent=2) + "\n")


def load_policy(folder: str | Path) -> LearnedPolicy:
    """Reads a policy folder. PyTorch is set to one thread, which is fastest for one observation.

    Raises:
        InputError: a file is missing or damaged, or the format is not known.
    """
    folder = Path(folder)
    path = folder / DESCRIPTION
    contents = {DESCRIPTION: read_bytes(path, MOST_DESCRIPTION_BYTES, inside=folder)}
    description = validated(
        PolicyDescription, parse_json(contents[DESCRIPTION], str(path)), str(path)
    )
    networks = {}
    left = MOST_BYTES  # of all weights together
    for name, sizes in description.networks.items():
        file = folder / f"{name}{WEIGHTS}"
        content = contents[file.name] = read_bytes(file, left, inside=folder)
        left -= len(content)
        try:
            arrays = load(content)
            with torch.device("meta"):  # nothing is drawn at random
                network = networks[name] = SetPolicyNetwork(sizes).eval()
            tensors = {key: torch.tensor(array) for key, array in arrays.items()}
            network.load_state_dict(tensors, assign=True)
        except DAMAGES as error:
            raise InputError(one_line(f"{file}: damaged, {error}")) from None
        for key, array in arrays.items():
            if array.dtype != np.float32 or not np.isfinite(array).all():
                raise InputError(f"{file}: {key} holds {array.dtype}, finite float32 is needed")
    torch.set_num_threads(1)
    digest = hashlib.sha256(b"".join(contents[name] for name in sorted(contents)))
    return LearnedPolicy(description, networks, digest.hexdigest())
