"""Who plays an evaluation, each under its name: policies, baselines, rules of the user's own."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agents.baseline import ALL, all_baselines, make_baselines
from agents.own_rule import RuleCode, own_rules
from agents.scheduler import Scheduler
from env.base.errors import InputError
from env.base.files import name_apart
from env.base.schema import names_file, short, validated
from env.learn.layouts import AgentsConfig
from env.score.reward import Objective
from env.sim.declared.hardware import ClusterConfig
from env.workloads.source import funded_tenants, is_funded
from evaluation.contest import Contests
from evaluation.evaluate_settings import EvaluateSettings


def players_of(settings: EvaluateSettings, cluster: ClusterConfig) -> list[Scheduler]:
    """The learned policies of a scenario, then the baselines, each in the order given.

    Raises:
        InputError: one of them cannot play here, two have one name, or there is nobody.
    """
    players = [*_policies(settings, cluster), *_baselines(settings)]
    for player in players:
        if any(kind.ticks for kind in player.asked) and settings.lease.autoscale is None:
            raise InputError(f"'{player.name}' scales, which takes lease=autoscaled")
    for name, count in Counter(player.name for player in players).items():
        if count > 1:
            raise InputError(f"baselines: '{name}' is what another one is called")
    if not players:
        raise InputError("evaluate: neither a policy nor baselines, at least 1 is needed")
    return players


def _baselines(settings: EvaluateSettings) -> list[Scheduler]:
    queued, funded = settings.rules.order is not None, is_funded(settings.workload)
    scaled = settings.lease.autoscale is not None
    entries: list[str | RuleCode] = []
    for entry in settings.baselines:
        entries += all_baselines(queued, funded, scaled) if entry == ALL else [entry]
    names = [entry for entry in entries if isinstance(entry, str)]
    named = iter(make_baselines(names, queued, settings.in_copies, funded))
    own = iter(own_rules([entry for entry in entries if isinstance(entry, RuleCode)], queued))
    return [next(own) if isinstance(entry, RuleCode) else next(named) for entry in entries]


def _policies(settings: EvaluateSettings, cluster: ClusterConfig) -> list[Scheduler]:
    if settings.agents is not None:
        validated(AgentsConfig, settings.agents, "agents")
    if not settings.policy:
        return []
    # PyTorch takes seconds to import; baselines alone do without.
    import torch

    from agents.learned.learned_scheduler import LearnedScheduler

    torch.set_num_threads(1)  # as in processes of Ray, so that sums come out the same
    return [
        LearnedScheduler(
            folder,
            cluster,
            settings.objective,
            settings.agents,
            settings.rules.order is not None,
            funded_tenants(settings.workload),
            name,
        )
        for name, folder in policy_folders(settings).items()
    ]


def policy_folders(settings: EvaluateSettings) -> dict[str, Path]:
    """The folders of the learned policies, by what tables call them.

    That is the name of the folder, with as many above it as it takes to tell them apart; of the
    folder `policy` of a run the name of the run's. Where the policy is swept the scenario names it,
    and all are called `learned`.

    Raises:
        InputError: one is not there, one is given twice, or a name is none of a file.
    """
    from agents.learned.learned_scheduler import policy_folder

    folders = [policy_folder(path) for path in settings.policy]
    if settings.sweeps_policy:
        return dict(zip(["learned"], folders, strict=True))
    paths = [folder.resolve() for folder in folders]
    parts = [(path.parent if path.name == "policy" else path).parts for path in paths]
    named: dict[str, Path] = {}
    for place, (own, folder) in enumerate(zip(parts, folders, strict=True)):
        others = parts[:place] + parts[place + 1 :]
        if own in others:
            raise InputError(f"policy: {short(settings.policy[place])} is given twice")
        # Recorded episodes are files of this name.
        name = name_apart(own, others)
        if not names_file(name) or name in named:
            raise InputError(f"policy: {short(name)}: rename the folder, it names a row and files")
        named[name] = folder
    return named


def hashes_of(contests: Contests) -> dict[str, str]:
    """Hashes of the files of learned policies and of rules of the user's own, by their names.

    Where policies of several scenarios have one name, it has the hash of each.
    """
    by_name: dict[str, list[str]] = {}
    for contest in contests.values():
        for player in contest.schedulers:
            if isinstance(sha256 := getattr(player, "sha256", None), str):
                by_name.setdefault(player.name, []).append(sha256)
    return {name: " ".join(dict.fromkeys(hashes)) for name, hashes in by_name.items()}


def other_objectives(players: Sequence[Scheduler], objective: Objective) -> Iterator[str]:
    """A line to say for each policy that was trained for another objective than the one here."""
    compared = objective.model_dump()
    for player in players:
        trained = getattr(player, "trained_for", compared)  # only policies have been
        if trained != compared:
            yield (
                f"note: {player.name} was trained for {weights(trained)}, here "
                f"{weights(compared)} counts"
            )


def weights(objective: Mapping[str, float]) -> str:
    """As they are overridden: objective.time_weight=1.0 objective.cost_weight=0.1."""
    return " ".join(f"objective.{name}={weight}" for name, weight in objective.items() if weight)
