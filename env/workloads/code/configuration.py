"""What is said of a workflow beside its code, in `config.yml`: what code cannot say.

These are the home region, runtimes, memory, bytes, how often a condition holds, and what plans of
its deployment have to keep to.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field

from env.base.errors import InputError
from env.base.files import read_yaml
from env.base.schema import Strict, distinct, nearest, validated
from env.sim.declared.bounds import Probability
from env.sim.declared.regions import Regions
from env.workloads.code.analysis import Code, Function, RegionName, RegionsAndProviders
from env.workloads.inline import InlineFunction


class CallNumbers(Strict):
    """Of the calls from one function to another: all, or one, counted from 0 in the caller."""

    source: str = Field(alias="from")
    target: str = Field(alias="to")
    call: int | None = Field(default=None, ge=0)
    data_bytes: int | None = Field(default=None, alias="bytes", ge=0)
    probability: Probability | None = None

    def of(self, source: str, target: str, call: int) -> bool:
        """Whether a call is one of them."""
        return (self.source, self.target) == (source, target) and self.call in (None, call)


Metric = Literal["carbon", "runtime", "cost"]
"""Of a run of a workflow: gCO2e, s, USD."""


class Constraint(Strict):
    """The most that a metric may be: a number, or % of what it is at home; None: anything."""

    type: Literal["absolute", "relative"]
    value: float | None = Field(default=None, ge=0)

    def fails(self, found: float, at_home: float) -> bool:
        """Whether a value is too large."""
        if self.value is None:
            return False
        return found > self.value * (at_home / 100 if self.type == "relative" else 1)


class Constraints(Strict):
    """Hard ones hold in bad cases, soft ones on average; plans rank by `priority_order`."""

    hard_resource_constraints: dict[Metric, Constraint | None] = Field(default_factory=dict)
    soft_resource_constraints: dict[Metric, Constraint | None] = Field(default_factory=dict)
    priority_order: Annotated[tuple[Metric, ...], AfterValidator(distinct), Field(min_length=1)] = (
        get_args(Metric)
    )


class Configuration(Strict, coerce_numbers_to_str=True):
    """The file; functions by the names that the code gives them."""

    workflow_name: str
    workflow_version: str
    home_region: RegionName
    regions_and_providers: RegionsAndProviders = RegionsAndProviders()
    environment_variables: Any = None
    functions: dict[str, InlineFunction] = Field(default_factory=dict)
    calls: tuple[CallNumbers, ...] = ()
    constraints: Constraints = Constraints()

    def deployed(self, function: Function) -> RegionsAndProviders:
        """Where a function can be deployed to: as its code says, or else as is said of all."""
        own = dict(function.regions_and_providers or ())
        said = {key: value for key, value in own.items() if value is not None}
        if said.keys() & Regions.model_fields.keys():  # none of these comes from elsewhere then
            said = dict.fromkeys(Regions.model_fields) | said
        return self.regions_and_providers.model_copy(update=said)

    def regions(self, function: Function) -> Regions:
        """Where a function may run; what is said of its name counts alone."""
        said = self.functions.get(function.name)
        if said and said.regions != Regions():
            return said.regions
        deployed = self.deployed(function)
        disallowed = None if deployed.allowed else deployed.disallowed
        return Regions(allowed=deployed.allowed, disallowed=disallowed)

    def inline(self, function: Function) -> InlineFunction:
        """What is said of a function, as an inline workflow says it.

        Raises:
            KeyError: nothing is.
        """
        said, providers = self.functions[function.name], self.deployed(function).providers or {}
        added = {"category": said.category or function.name, "regions": self.regions(function)}
        if (at_home := providers.get(self.home_region.split(":")[0])) and not said.memory:
            added["memory"] = at_home.memory
        return said.model_copy(update=added)

    def of_call(self, source: str, target: str, call: int) -> dict[str, Any]:
        """The numbers of a call that are given; the last ones count."""
        found: dict[str, Any] = {}
        for numbers in self.calls:
            if numbers.of(source, target, call):
                found |= numbers.model_dump(exclude_none=True)
        return found


def read_configuration(path: Path, code: Code) -> Configuration:
    """The configuration of a workflow, which must not contradict its code.

    Raises:
        InputError: it is no such file, it says something of what the code does not have or says
            otherwise, or a function must not run in the home region.
    """
    where, declared = str(path), f"{code.where}:{code.line}"
    given = validated(Configuration, read_yaml(path, where), where)
    for key, needed in (("workflow_name", code.name), ("workflow_version", code.version)):
        if (found := getattr(given, key)) != needed:
            raise InputError(f"{where}: {key}: '{found}' found, {declared} says '{needed}'")
    names = {key: function.name for key, function in code.functions.items()}
    for name in given.functions:
        if name not in names.values():
            near = nearest(name, list(names.values()))
            raise InputError(f"{where}: functions.{name}: not in {declared}, {near}")
    for at, numbers in enumerate(given.calls):
        conditions = {
            call.condition
            for function in code.functions.values()
            for successor, call in enumerate(function.calls)
            if numbers.of(function.name, names[call.target], successor)
        }
        if not conditions or (numbers.probability and None not in conditions):
            fault = "says itself how probable it is" if conditions else "has no such call"
            raise InputError(f"{where}: calls.{at}: {code.where} {fault}")
    for function in code.functions.values():
        if given.home_region in (given.regions(function).disallowed or ()):
            fault = f"{given.home_region} is the home region, and disallowed"
            raise InputError(f"{code.where}:{function.line}: {fault}")
    return given
