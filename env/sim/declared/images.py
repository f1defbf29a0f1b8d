"""Images: what containers are started from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from env.base.errors import InputError
from env.sim.declared.bounds import LONGEST
from env.sim.declared.workflow_template import WorkflowTemplate
from env.sim.state import queue_records

NOTHING_EARLIER = np.zeros(0, queue_records.EARLIER)


@dataclass(frozen=True, eq=False)
class Images:
    """What containers are started from.

    Attributes:
        cold_start: float64 (J,), D: seconds to start a container of the image.
        of: of each template int (F,), the images of its functions.
        memory: int (J,), MB; empty: the most that any of these functions needs.
        earlier: gives EARLIER (K,), executions before time 0 from which idle times are learned.

    Raises:
        InputError: a cold start or an image is out of its bounds, or there are too few or too many.
    """

    cold_start: np.ndarray
    of: Mapping[WorkflowTemplate, np.ndarray]
    memory: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    earlier: Callable[[], np.ndarray] = NOTHING_EARLIER.copy

    def __post_init__(self) -> None:
        outside = ~((self.cold_start >= 0) & (self.cold_start <= LONGEST))
        if outside.any():
            raise InputError(
                f"images: a cold start is {self.cold_start[outside][0]} s, "
                f"at least 0 and at most {LONGEST:g} is needed"
            )
        count = len(self.cold_start)
        for template, images in self.of.items():
            if len(images) != template.function_count:
                raise InputError(
                    f"images: {len(images)} are given for the {template.function_count} functions "
                    f"of '{template.name}'"
                )
            wrong = (images < 0) | (images >= count)
            if wrong.any():
                raise InputError(
                    f"images: {images[wrong][0]} of '{template.name}' is none, 0 to {count - 1} are"
                )
        if len(self.memory) == 0:
            memory = np.zeros(count, np.int64)
            for template, images in self.of.items():
                np.maximum.at(memory, images, template.memory_req)
            object.__setattr__(self, "memory", memory)
        few = len(self.memory) != count
        if few or any((self.memory[images] < 1).any() for images in self.of.values()):
            raise InputError(f"images: memory: {count} amounts of at least 1 MB are needed")

    @classmethod
    def by_name(
        cls,
        templates: Iterable[WorkflowTemplate],
        cold_start: np.ndarray | float,
        earlier: Callable[[], np.ndarray] = NOTHING_EARLIER.copy,
    ) -> Images:
        """One image for all functions of a name, as workflows that call a function many times.

        Args:
            templates: their `images` count more than names. A number is no name: a function that
                has nothing else has an image of its own.
            cold_start: seconds (J,), by image in the order of `templates`, or of all.
            earlier: as of the class.

        Raises:
            InputError: there are more or fewer cold starts than images.
        """
        index: dict[Hashable, int] = {}
        of = {}
        for template in templates:
            names = template.images or template.function_names or template.function_count * ("0",)
            keys = (
                (template, at) if str(name).isdecimal() else name for at, name in enumerate(names)
            )
            of[template] = np.array([index.setdefault(key, len(index)) for key in keys])
        if not isinstance(cold_start, np.ndarray):
            cold_start = np.full(len(index), float(cold_start))
        return cls(cold_start, of, earlier=earlier)

    def of_all(self, templates: Iterable[WorkflowTemplate]) -> np.ndarray:
        """(D,) the images of all functions of some templates, one template after the other."""
        return np.concatenate([self.of[template] for template in templates])
