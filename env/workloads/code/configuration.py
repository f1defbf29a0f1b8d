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
from env.workloads.code.analysis import Code, Faults, Function, RegionName, RegionsAndProviders
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

    def regions(self, function: Function) -> Regions:
        """Where a function may run: as the file says of it, as its code says, as of all."""
        if function.name in self.functions and self.functions[function.name].regions != Regions():
            return self.functions[function.name].regions
        own, all_of = function.deployed, self.regions_and_providers
        allowed = all_of.allowed if own.allowed is None else own.allowed
        if allowed:  # then no others count
            return Regions(allowed=allowed)
        disallowed = all_of.disallowed if own.disallowed is None else own.disallowed
        return Regions(disallowed=disallowed or None)

    def inline(self, function: Function) -> InlineFunction:
        """What is said of a function, as an inline workflow says it.

        Raises:
            KeyError: nothing is.
        """
        said, providers = self.functions[function.name], self.regions_and_providers.providers
        if function.deployed.providers is not None:
            providers = function.deployed.providers
        provider = (providers or {}).get(self.home_region.split(":")[0])
        added = {"category": said.category or function.name, "regions": self.regions(function)}
        if said.memory is None and provider is not None:
            added["memory"] = provider.memory
        return said.model_copy(update=added)


def read_configuration(path: Path, code: Code) -> Configuration:
    """The configuration of a workflow, which must not contradict its code.

    Raises:
        InputError: it is no such file, it says something of what the code does not have or says
            otherwise, or a function must not run in the home region.
    """
    where, declared = str(path), f"{code.where}:{code.line}"
    given = validated(Configuration, read_yaml(path, where), where)
    for key, needed in (("workflow_name", code.name), ("workflow_version", code.version)):
        if getattr(given, key) != needed:
            found = getattr(given, key)
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
        if not conditions:
            raise InputError(f"{where}: calls.{at}: there is no such call in {code.where}")
        if numbers.probability is not None and None not in conditions:
            stated = f"{code.where} calls always, or with another probability"
            raise InputError(
                f"{where}: calls.{at}.probability: {numbers.probability} found, {stated}"
            )
    faults = Faults(code.where)
    for function in code.functions.values():
        if given.home_region in (given.regions(function).disallowed or ()):
            faults.add(function.line, f"{given.home_region} is the home region, and disallowed")
    faults.refuse()
    return given
