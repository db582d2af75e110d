"""The figures per compute capability against the functions in cuda_occupancy.h of the installed CUDA."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from vramscope.cards import Card, all_cards
from vramscope.units import KIB

INCLUDE = Path(sysconfig.get_paths()["purelib"]) / "nvidia/cu13/include"
COMPILER = shutil.which("cc") or shutil.which("gcc")

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "cuda_occupancy.h"

int main(int argc, char **argv)
{
    cudaOccDeviceProp card = {0};
    int blocks = -1, largest = -1;
    card.computeMajor = argc > 1 ? atoi(argv[1]) : 0;
    card.computeMinor = argc > 2 ? atoi(argv[2]) : 0;
    if (cudaOccMaxBlocksPerMultiprocessor(&blocks, &card) != CUDA_OCC_SUCCESS) return 1;
    for (int kib = 1; kib <= 1024; kib++) {
        size_t size = (size_t)kib * 1024;
        if (cudaOccAlignUpShmemSizeVoltaPlus(&size, &card) == CUDA_OCC_SUCCESS) largest = kib;
    }
    return printf("%d %d\\n", blocks, largest) < 0;
}
"""

pytestmark = pytest.mark.skipif(
    COMPILER is None or not (INCLUDE / "cuda_occupancy.h").exists(),
    reason="no C compiler, or no headers of CUDA 13 installed",
)

CARDS = list({card.capability: card for card in all_cards()}.values())


@pytest.fixture(scope="module")
def occupancy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("occupancy")
    source, program = folder / "occupancy.c", folder / "occupancy"
    source.write_text(PROGRAM, encoding="utf-8")
    subprocess.run([str(COMPILER), "-w", f"-I{INCLUDE}", "-o", program, source], check=True)
    return program


@pytest.mark.parametrize("card", CARDS, ids=lambda card: "{}.{}".format(*card.capability))
def test_blocks_and_shared_memory_of_an_sm(card: Card, occupancy: Path) -> None:
    command = [str(occupancy), *map(str, card.capability)]
    answer = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    assert [int(word) for word in answer] == [card.blocks_per_sm, card.shared_per_sm_bytes // KIB]
