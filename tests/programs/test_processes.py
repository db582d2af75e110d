"""How programs start and end: as a module, with workers, many times over, and stopped after some steps."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

TRAIN = """
import sys, torch
from trainer.net import net
model = net().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(int(sys.argv[1])):
    model(torch.randn(4, 64, device="cuda")).square().mean().backward()
    optimizer.step()
print(__name__, sys.argv[1:])
"""

REPETITIONS = 12  # bench/teardown.py makes a hundred


def test_a_module_with_arguments(program, tmp_path):
    package = tmp_path / "trainer"
    package.mkdir()
    (package / "net.py").write_text("import torch\ndef net(): return torch.nn.Linear(64, 8)\n")
    (package / "__main__.py").write_text(TRAIN)
    ran = program("-m", "trainer", "2").check()

    assert ran.stdout == "__main__ ['2']\n"
    assert len(ran.of("step")) == 2


def test_workers_forked_and_spawned(program):
    ran = program("workers.py").check()

    assert len(ran.of("step")) == 4
    assert set(ran.facts) == {"fork", "spawn"}
    mains = [entry["main"] for entry in ran.of("process")]
    assert mains.count(True) == 1
    assert mains.count(False) >= 2  # the spawned ones; a fork is no new Python


def test_short_scripts_end_cleanly(program):
    with ThreadPoolExecutor(2) as two:
        all_of_them = list(two.map(lambda _: program("short.py"), range(REPETITIONS)))

    for ran in all_of_them:
        assert ran.check().stdout == "done\n"


@pytest.mark.parametrize(("script", "library"), [("lightning_fit.py", "lightning"), ("trainer_bert.py", "transformers"), ("workers.py", "torch")])
def test_a_framework_lets_the_program_be_stopped(program, script, library):
    """Loops of libraries catch a lot, and have workers and progress bars to clean up."""
    pytest.importorskip(library)
    ran = program(script, steps=2).check(how="steps")

    assert len(ran.of("step")) == 2
    assert not ran.facts  # it was stopped before its first part was over
