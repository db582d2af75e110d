"""Loading a model of transformers that is quantized on its way to the card, without a file of weights."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vramscope.jobs.script import Script
    from vramscope.jobs.work import Work

_WEIGHT = '''\
class Weight:
    """A tensor of a file: it comes to the card when it is read, one at a time."""

    def __init__(self, like):
        self.shape = like.shape

    def __getitem__(self, index):
        return torch.randn(self.shape, dtype={dtype}, device=device)'''
_FROM_CONFIG = re.compile(r"model = (\w+)\.from_config\(.*\)")


def write_loading(script: Script, work: Work, quantization: str, dtype: str) -> None:
    """Puts `from_pretrained` in the place of `from_config`.

    `quantization` is the code that makes ``quantization``, a config; weights of `dtype` are made at random
    one by one, as `from_pretrained` would read them from files."""
    found = _FROM_CONFIG.fullmatch(script.build[-1])
    assert found is not None, script.build
    script.functions.append(_WEIGHT.format(dtype=dtype))
    script.build_contexts = []
    script.build[:] = [
        quantization,
        'with torch.device("meta"):',
        f"    paper = {found[1]}.from_config(config, dtype={dtype})",
        "weights = {name: Weight(each) for name, each in paper.named_parameters()}",
        "model = type(paper).from_pretrained(",
        "    None,",
        "    config=config,",
        f"    dtype={dtype},",
        '    device_map={"": 0},',
        "    quantization_config=quantization,",
        "    state_dict=weights,",
        ")",
        "del paper, weights",
    ]
