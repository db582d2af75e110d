"""How fast a prediction is: ratios measured in one run, never times on their own.

The bare prototype of the method, where it lies beside the project (shared/prototype), is the yardstick of a step."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
STEPS = """
import json, sys, time, timm, torch
model = timm.create_model("resnet50", num_classes=102).cuda()
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.randn(90, 3, 224, 224, device="cuda"), torch.randint(102, (90,), device="cuda")
times = []
for _ in range(25):
    began = time.perf_counter()
    optimizer.zero_grad(); torch.nn.functional.cross_entropy(model(x), y).backward(); optimizer.step()
    times.append(time.perf_counter() - began)
print("STEP", sorted(times[5:])[10])
"""
PREDICT = [sys.executable, "-m", "vramscope", "predict"]


def seconds(command: list[str], **how: object) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, **how)  # type: ignore[call-overload]
    return time.perf_counter() - began


def median(measure: object, times: int) -> float:
    return statistics.median(measure() for _ in range(times))  # type: ignore[operator]


def step_seconds(command: list[str]) -> float:
    out = subprocess.run([*command, "-c", STEPS], check=True, capture_output=True, text=True).stdout
    return float(next(line for line in out.splitlines() if line.startswith("STEP")).split()[1])


def steady_step(prototype: Path, rounds: int) -> dict[str, float]:
    """Ours and the prototype's in turn, so that both see the same machine; bench/recorder.py has the history's cost."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "prototype"
        shutil.copytree(prototype, copy)
        os.environ["PYTHON"] = sys.executable
        bare, ours = [], []
        for _ in range(rounds):
            bare.append(step_seconds([str(copy / "run"), "--gpu", "RTX3060"]))
            ours.append(step_seconds([*PREDICT, "--gpu", "rtx-3060", "--steps", "all", "--no-history"]))
    return {"prototype_ms": 1e3 * statistics.median(bare), "ours_ms": 1e3 * statistics.median(ours), "ratio": statistics.median(ours) / statistics.median(bare)}


def whole_predict(rounds: int) -> dict[str, float]:
    script = str(ROOT / "examples" / "resnet50_step.py")
    imports = median(lambda: seconds([sys.executable, "-c", "import torch, timm"]), rounds)
    predict = median(lambda: seconds([*PREDICT, "--gpu", "rtx-3060", script]), rounds)
    return {"import_s": imports, "predict_s": predict, "allowed_s": 1.5 * imports + 2}


def llama() -> dict[str, float]:
    """Wall time and the largest resident set of an 8-billion-parameter model's three steps."""
    script = str(ROOT / "examples" / "llama_8b_step.py")
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, capture_output=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    began = time.perf_counter()
    out = subprocess.run([sys.executable, "-c", code, *PREDICT, "--gpu", "h200", script], check=True, capture_output=True, text=True).stdout
    return {"seconds": time.perf_counter() - began, "resident_gb": int(out) * 1024 / 1e9}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prototype", type=Path, default=ROOT.parent / "shared" / "prototype")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    results: dict[str, dict[str, float]] = {"whole predict of a ResNet-50 script": whole_predict(args.rounds)}
    if args.prototype.is_dir():
        results["steady step of ResNet-50, batch 90"] = steady_step(args.prototype, args.rounds)
    results["Llama of 8 billion parameters, 3 steps"] = llama()
    for name, figures in results.items():
        print(f"{name}: " + ", ".join(f"{key} {value:.2f}" for key, value in figures.items()))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
