"""The Python face, as a notebook uses it."""

from __future__ import annotations

import pytest

import vramscope
from vramscope.errors import RunError

SCRIPT = """
import torch
model = torch.nn.Linear(1024, {width}).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.randn(64, 1024).cuda()).sum().backward(); optimizer.step(); optimizer.zero_grad()
"""


def test_predict_save_load_explain_compare(tmp_path):
    reports = []
    for width in (512, 2048):
        (tmp_path / f"{width}.py").write_text(SCRIPT.format(width=width))
        reports.append(vramscope.predict(tmp_path / f"{width}.py", "t4", save=tmp_path / f"{width}.vram"))
    small, large = (vramscope.load(tmp_path / f"{width}.vram") for width in (512, 2048))

    assert [small.report, large.report] == reports
    assert small.check() == large.check() == ()
    assert any(finding.key == "peak" for finding in vramscope.explain(large))
    compared = vramscope.compare(small, large)
    assert compared is not None
    with pytest.raises(RunError):
        vramscope.load(tmp_path / "512.py")
