"""A program's own checks of unknown values are taken as passed, whichever way they are written."""

from __future__ import annotations

import pytest

CHECKED = """
import torch
x = torch.randn(100, device="cuda")
{}
print("went on")
"""


@pytest.mark.parametrize(
    "check",
    [
        "if (x < 0).any(): raise ValueError('negative')",
        "if not (x < 0).all(): raise ValueError('positive')",
        "assert (x > 0).all()",
        "assert not (x > 0).any(), 'text'",
        "torch._assert(bool((x <= 1).all()), 'too large')",
        "if (x <= 0).any():\n    worst = x.min()\n    torch._assert(False, 'degenerate')",
        "if (x < 0).all() and (x > 0).all():\n    pass\nelse:\n    raise ValueError",
        "if bool((x == 0).any().item()): raise ValueError",
    ],
)
def test_a_check_passes(virtual, tmp_path, check):
    script = tmp_path / "checked.py"
    script.write_text(CHECKED.format(check))
    ran = virtual(f"import runpy; runpy.run_path({str(script)!r})").check()
    assert ran.stdout == "went on\n"
    assert ran.of("assumed")


def test_what_is_no_check_follows_the_policy(virtual, tmp_path):
    script = tmp_path / "mask.py"
    script.write_text(
        "import torch\nx = torch.randn(100, device='cuda')\nif (x < 0).any(): print(len(x[x < 0]))\nelse: print('none')\n"
    )
    assert virtual(f"import runpy; runpy.run_path({str(script)!r})").check().stdout == "100\n"


def test_known_values_fail_a_check_all_the_same(virtual, tmp_path):
    script = tmp_path / "known.py"
    script.write_text(
        "import torch\nx = torch.full((4,), -1, device='cuda')\nif (x < 0).any(): raise ValueError('negative')\n"
    )
    ran = virtual(f"import runpy; runpy.run_path({str(script)!r})")
    assert "ValueError: negative" in ran.stderr
