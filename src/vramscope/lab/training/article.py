"""The seed article's experiment: its sizes, what it read, and the two ways of tuning that are its own."""

from __future__ import annotations

from collections.abc import Mapping

from vramscope.lab.article import BATCH, CLASSES, IMAGE

TRAIN_IMAGES, TEST_IMAGES = 1020, 6149
"""Of Flowers102; with batches of 90 the last ones have 30 and 29 images."""
MODEL = "resnet18"
OPTIMIZER = "adam"
FREEZE, LORA = "article-freeze", "article-lora"

FREEZE_CODE = """\
modules = list(model.modules())
for module in modules[: int(0.95 * len(modules))]:
    module.requires_grad = False  # an attribute of a module, which nothing reads: its parameters still train"""
LORA_CODE = """\
targets = [name for name, module in model.named_modules() if isinstance(module, (nn.Linear, nn.Conv2d))]
adapter = LoraConfig(r=4, target_modules=targets, lora_dropout=0.1)
model = get_peft_model(model, adapter)"""
"""The dropout keeps a copy of each layer's input for the branch: that is why the article's LoRA saves nothing."""

_NVITOP_GB: Mapping[tuple[str, str], float] = {
    ("fp32", "full"): 5.0,
    ("fp32", FREEZE): 5.0,
    ("fp32", LORA): 5.1,
    ("amp-fp16", "full"): 3.0,
    ("amp-fp16", FREEZE): 3.0,
    ("amp-fp16", LORA): 3.2,
}


def readings(
    model: str, classes: int, batch: int, image: int, optimizer: str
) -> Mapping[tuple[str, str], float]:
    """What the article read in nvitop (GB), by precision and tune, the full fp32 one first; empty for other sizes."""
    same = (model, classes, batch, image, optimizer) == (MODEL, CLASSES, BATCH, IMAGE, OPTIMIZER)
    return _NVITOP_GB if same else {}
