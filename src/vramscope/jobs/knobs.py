"""All knobs, in the order in which their techniques write into a program."""

from __future__ import annotations

from vramscope.errors import RecipeError
from vramscope.jobs.facts import TASKS
from vramscope.jobs.technique import AUTO, Knob, Technique, nearest, whole_number
from vramscope.jobs.techniques.optimizer import OPTIMIZER
from vramscope.jobs.techniques.precision import PRECISION
from vramscope.jobs.techniques.tune import TUNE

TASK = Knob(
    "task",
    "What is done with the model",
    AUTO,
    tuple(Technique(task, f"the program's task is {task}") for task in TASKS),
)
BATCH = Knob("batch", "Samples in a micro-batch", AUTO, number=whole_number("batch"))
IMAGE = Knob("image", "The side of the images, in pixels", AUTO, number=whole_number("image"))
SEQ = Knob("seq", "The length of a sequence, or of a prompt, in tokens", AUTO, number=whole_number("seq"))
NEW_TOKENS = Knob("new-tokens", "How many tokens are generated", AUTO, number=whole_number("new-tokens"))

SHAPES = (BATCH, IMAGE, SEQ, NEW_TOKENS)
"""What the data look like."""
KNOBS: tuple[Knob, ...] = (TASK, *SHAPES, PRECISION, TUNE, OPTIMIZER)
KNOBS_BY_NAME = {knob.name: knob for knob in KNOBS}


def knob_named(name: str) -> Knob:
    """The knob of that name; RecipeError names the nearest ones."""
    found = KNOBS_BY_NAME.get(name.strip().replace("_", "-"))
    if found is None:
        raise RecipeError(f"what to vary: {nearest(name, tuple(KNOBS_BY_NAME))}")
    return found
