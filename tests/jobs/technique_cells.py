"""Two small models and their cells, for tests of what techniques do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from vramscope.analysis.compare.side import side_of
from vramscope.jobs.facts import CAUSAL_LM, CLASSIFICATION, GENERATE, INFERENCE, Facts
from vramscope.jobs.libraries import modules_for
from vramscope.jobs.recipe import recipe_of
from vramscope.jobs.source import parse_source
from vramscope.jobs.work import Work
from vramscope.jobs.write import settled, write_program
from vramscope.planning.cell import Cell
from vramscope.planning.result import Result
from vramscope.planning.running import run_cell
from vramscope.run.store import run_from_bytes

TEXT = (
    "hf/llama?hidden_size=128&intermediate_size=256&num_hidden_layers=4&num_attention_heads=4"
    "&num_key_value_heads=2&vocab_size=8192"
)
"""Each of its tensors is a multiple of 512 bytes, in fp32 and in bf16, so that bytes come out even."""
WIDE = TEXT.replace("hidden_size=128", "hidden_size=1024").replace("layers=4", "layers=1")
"""Wide enough for the tiles of 4-bit kernels."""
IMAGES = "timm/resnet18"
MODULES = (*modules_for(parse_source(TEXT)), "timm")
"""For all of them one warm process."""
FACTS = {
    TEXT: Facts(
        tasks=(CAUSAL_LM, INFERENCE, GENERATE),
        kind="LlamaForCausalLM",
        vocabulary=8192,
        layers={"Linear": 29, "LlamaRMSNorm": 9},
        blocks=tuple(f"model.layers.{index}" for index in range(4)),
        abilities=("eager", "gradient_checkpointing", "sdpa", "flash"),
        settings={"by_type": True},
    ),
    IMAGES: Facts(
        tasks=(CLASSIFICATION, INFERENCE),
        kind="ResNet",
        image=224,
        classes=1000,
        layers={"Conv2d": 20, "BatchNorm2d": 20, "Linear": 1},
        blocks=tuple(f"layer{stage}.{block}" for stage in range(1, 5) for block in range(2)),
        abilities=("set_grad_checkpointing",),
    ),
}
FACTS[WIDE] = FACTS[TEXT]
SHAPES = {TEXT: {"batch": "2", "seq": "128"}, IMAGES: {"batch": "8", "image": "64"}}
SHAPES[WIDE] = SHAPES[TEXT]


@dataclass(frozen=True)
class Ran:
    """A cell's result, and the most that each category ever held, in bytes."""

    result: Result
    highest: dict[str, int]

    @property
    def trained_bytes(self) -> int:
        """Of what is trained, in fp32."""
        assert self.result.trained is not None
        return 4 * self.result.trained


def work_of(text: str, positions: dict[str, str], facts: Facts | None = None) -> Work:
    """A workload on the small shapes."""
    source = parse_source(text)
    return settled(source, recipe_of({**SHAPES.get(text, {}), **positions}), facts or FACTS[text])


def program(text: str, **positions: str) -> str:
    """A workload's program; underscores in knobs' names stand for hyphens."""
    return write_program(work_of(text, positions)).render()


def ran(text: str, **positions: str) -> Ran:
    """A cell of one of the models on a virtual RTX 3090: it must end, and its sums must close."""
    return _ran(text, tuple(sorted(positions.items())))


@cache
def _ran(text: str, positions: tuple[tuple[str, str], ...]) -> Ran:
    script = write_program(work_of(text, dict(positions)))
    cell = Cell(script.render(), "job", "rtx-3090", MODULES, script.environment)
    outcome = run_cell(cell, limit_s=200)
    assert outcome.result.fits, f"{positions}: {outcome.result.why}"
    assert outcome.result.check() == ()
    assert outcome.run is not None
    return Ran(outcome.result, side_of(run_from_bytes(outcome.run)).highest)
