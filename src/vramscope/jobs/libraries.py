"""What a process that runs many programs of a source should import once."""

from __future__ import annotations

from vramscope.jobs.fingerprint import imported, module_files
from vramscope.jobs.source import DIFFUSERS, FUNCTION, HF, TIMM, TORCHVISION, Source

PRELOADING = "vramscope.jobs.sources.preloading"
"""The parts of transformers that take long, imported so that the card stays untouched; good for peft's users, too."""
_VISION = ("torchvision", "timm")
_TRANSFORMERS = ("transformers", PRELOADING)
_DIFFUSERS = ("vramscope.jobs.sources.preloading_diffusers",)
"""Its models' own modules import bitsandbytes where it is, which uses the card at once."""
_DYNAMO = "torch._dynamo"
"""The first step of an optimizer imports it; the other libraries do so anyway."""
_MODULES = {
    TIMM: _VISION,
    TORCHVISION: _VISION,
    HF: _TRANSFORMERS,
    DIFFUSERS: _DIFFUSERS,
}
_OF_PACKAGE = {
    "timm": _VISION,
    "torchvision": ("torchvision",),
    "transformers": _TRANSFORMERS,
    "diffusers": _DIFFUSERS,
}


def modules_for(source: Source, task: str = "") -> tuple[str, ...]:
    """Modules that the source's programs import and that leave the card alone; the same for all its tasks."""
    if source.library == FUNCTION:
        return ("torch", _DYNAMO, *_used_by(source))
    return ("torch", *_MODULES[source.library])


def _used_by(source: Source) -> tuple[str, ...]:
    """The large libraries that a user's module imports; the module itself may change and is left to the programs."""
    names = {name.partition(".")[0] for file in module_files(source) for name in imported(file)}
    modules = (module for package, each in _OF_PACKAGE.items() if package in names for module in each)
    return tuple(dict.fromkeys(modules))
