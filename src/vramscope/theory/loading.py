"""Loading a checkpoint: what is there at the same time."""

from __future__ import annotations

from vramscope.theory.formula import Formula


def loading(parameters: int, width: int) -> tuple[Formula, ...]:
    """The peak where the checkpoint is read to, for weights of an element's width in bytes."""
    size = parameters * width
    rows = (
        (
            'torch.load(map_location="cuda")',
            "2·W",
            2 * size,
            "The model is on the card already and load_state_dict copies into it; the file's tensors live beside it "
            "until the last name for them is gone.",
            "torch/nn/modules/module.py: load_state_dict, param.copy_(input_param)",
        ),
        (
            'torch.load(map_location="cpu")',
            "W on the card, 2·W on the host if the model was made there",
            size,
            "The card sees one copy; the host holds the file's tensors, and the model's own if it was made there.",
            "docs.pytorch.org/docs/stable/generated/torch.load.html",
        ),
        (
            "torch.load(mmap=True), model on meta, load_state_dict(assign=True)",
            "W",
            size,
            "The model is made without memory and takes the file's tensors as its own; the host reads the file page by "
            "page.",
            "docs.pytorch.org/tutorials/recipes/recipes/module_load_state_dict_tips.html",
        ),
    )
    given = {"parameters": parameters, "bytes": width}
    return tuple(
        Formula(name, expression, {"card_bytes": value}, assumption, source, given)
        for name, expression, value, assumption, source in rows
    )
