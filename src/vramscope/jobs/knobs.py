"""All knobs, in the order in which their techniques write into a program."""

from __future__ import annotations

from vramscope.errors import RecipeError
from vramscope.jobs.facts import TASKS
from vramscope.jobs.technique import AUTO, Knob, Technique, nearest, whole_number
from vramscope.jobs.techniques.accumulate import ACCUMULATE
from vramscope.jobs.techniques.allocator import ALLOCATOR
from vramscope.jobs.techniques.attention import ATTENTION
from vramscope.jobs.techniques.averaging import EMA
from vramscope.jobs.techniques.cache import CACHE
from vramscope.jobs.techniques.channels_last import CHANNELS_LAST
from vramscope.jobs.techniques.checkpoint import CHECKPOINT
from vramscope.jobs.techniques.clip import CLIP
from vramscope.jobs.techniques.compiling import COMPILE
from vramscope.jobs.techniques.cross_entropy import CROSS_ENTROPY
from vramscope.jobs.techniques.cudnn_benchmark import CUDNN_BENCHMARK
from vramscope.jobs.techniques.offload import OFFLOAD
from vramscope.jobs.techniques.optimizer import OPTIMIZER, OPTIMIZER_IMPL
from vramscope.jobs.techniques.optimizer_in_backward import OPTIMIZER_IN_BACKWARD
from vramscope.jobs.techniques.precision import PRECISION
from vramscope.jobs.techniques.targets import TARGETS
from vramscope.jobs.techniques.tune import TUNE
from vramscope.jobs.techniques.weights import WEIGHTS
from vramscope.jobs.techniques.zero_grad import ZERO_GRAD

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
KNOB_GROUPS: dict[str, tuple[Knob, ...]] = {
    "the work": (TASK, *SHAPES, ACCUMULATE),
    "the machine": (ALLOCATOR, CUDNN_BENCHMARK),
    "the model": (PRECISION, ATTENTION, WEIGHTS, TUNE, TARGETS, CHANNELS_LAST, CACHE),
    "activations": (CHECKPOINT, OFFLOAD, CROSS_ENTROPY),
    "the step": (OPTIMIZER, OPTIMIZER_IMPL, OPTIMIZER_IN_BACKWARD, ZERO_GRAD, CLIP, EMA),
    "the compiler": (COMPILE,),
}
"""By what they are about.  Their order is that of writing: each sees what those before it have done to the model."""
KNOBS: tuple[Knob, ...] = tuple(knob for group in KNOB_GROUPS.values() for knob in group)
KNOBS_BY_NAME = {knob.name: knob for knob in KNOBS}


def knob_named(name: str) -> Knob:
    """The knob of that name; RecipeError names the nearest ones."""
    found = KNOBS_BY_NAME.get(name.strip().replace("_", "-"))
    if found is None:
        raise RecipeError(f"what to vary: {nearest(name, tuple(KNOBS_BY_NAME))}")
    return found
