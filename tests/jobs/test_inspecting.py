"""What is found out about a model by building it on paper: one process looks at all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from virtual_runs import run_virtual
from vramscope.errors import MissingLibraryError, SourceError
from vramscope.jobs.facts import Facts
from vramscope.jobs.source import parse_source
from vramscope.jobs.sources.paper import library

LOOK = """
import json, sys
from vramscope.jobs.inspecting import main
sys.path.insert(0, {folder!r})
for number, text in enumerate({texts!r}):
    main(text, f"{folder}/{{number}}.json")
"""
SIZES = "hidden_size=64&num_hidden_layers=2&num_attention_heads=2&intermediate_size=128&vocab_size=1000"
LLAMA, BERT = f"hf/llama?{SIZES}", f"hf/bert?{SIZES}"
BART = "hf/bart?d_model=64&encoder_layers=1&decoder_layers=1&vocab_size=1000"
VIT = "timm/vit_tiny_patch16_224"
UNET = (
    "diffusers/UNet2DConditionModel?sample_size=16&block_out_channels=32,64&layers_per_block=1&norm_num_groups=8"
    "&cross_attention_dim=64&down_block_types=CrossAttnDownBlock2D,DownBlock2D&up_block_types=UpBlock2D,CrossAttnUpBlock2D"
)
SSD = "torchvision/ssdlite320_mobilenet_v3_large"
GOOD = ("timm/resnet18", VIT, LLAMA, BERT, BART, SSD, UNET, "torchvision/fcn_resnet50", "jobs_of_mine:small")
BAD = {
    "timm/resnet8": "did you mean resnet18",
    "timm/resnet18?bogus=3": "unexpected keyword argument 'bogus'",
    "torchvision/resnet": "did you mean resnet50, resnet34, resnet18?",
    "torchvision/r3d_18": "returns a vramscope.Job",
    "hf/gpt2?n_ebd=64": "GPT2Config has no n_ebd; did you mean n_embd",
    "hf/gpt2?n_embd=much": "expected int, got str",
    "hf/gpt2?n_embd=63&n_head=2": "must be divisible",
    "hf/lama": "did you mean llama",
    "hf/nobody/nothing": "HF_HUB_OFFLINE is set and it is not in the cache; give a local folder",
    "hf/whisper": "no model for whisper that takes text or images",
    "hf/./nowhere": "there is no folder ./nowhere",
    "diffusers/UNet2DModel?blocks=3": "UNet2DModel has no blocks",
    "diffusers/HunyuanDiT2DModel": "built in are UNet2DModel",
    "jobs_of_mine:none": "has no function none",
    "jobs_of_mine:broken": "broken() raised ValueError: no",
    "jobs_of_mine:three": "three() returned int, not a vramscope.Job",
    "jobs_of_nobody:any": "there is no module jobs_of_nobody",
}
JOBS = """
from torch import nn
from vramscope.jobs.job import Job
def small():
    return Job(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()), lambda size: None, lambda model, batch: None)
def broken():
    raise ValueError("no")
def three():
    return 3
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By source, what `main` wrote."""
    folder = tmp_path_factory.mktemp("told")
    (folder / "jobs_of_mine.py").write_text(JOBS)
    (folder / "empty").mkdir()
    saved = folder / "saved"
    saved.mkdir()
    (saved / "config.json").write_text(
        '{"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "dtype": "bfloat16"}'
    )
    _cached(folder / "home", "some/one", "config.json", (saved / "config.json").read_text())
    _cached(
        folder / "home", "some/line", "unet/config.json", '{"_class_name": "UNet2DModel", "sample_size": 32}'
    )
    texts = [*GOOD, *BAD, f"hf/{folder}/empty", f"hf/{saved}", "hf/some/one?n_layer=3", "diffusers/some/line"]
    done = run_virtual(
        LOOK.format(folder=str(folder), texts=texts), HF_HUB_OFFLINE="1", HF_HOME=str(folder / "home")
    )
    assert done.returncode == 0, done.stderr
    found = {text: json.loads((folder / f"{number}.json").read_text()) for number, text in enumerate(texts)}
    return {text.replace(str(folder), ""): value for text, value in found.items()}


def _cached(home: Path, repository: str, file: str, text: str) -> None:
    """Keeps a repository's file as the hub's client does."""
    kept = home / "hub" / f"models--{repository.replace('/', '--')}"
    path = kept / "snapshots" / "abc" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc")


@pytest.mark.virtual
def test_facts_say_what_a_model_is(told: dict[str, Any]):
    facts = {text: Facts.from_json(value["facts"]) for text, value in told.items() if "facts" in value}

    assert facts["timm/resnet18"].parameters == 11_689_512
    assert facts["timm/resnet18"].layers["Conv2d"] == 20
    assert facts["timm/resnet18"].blocks == tuple(
        f"layer{stage}.{block}" for stage in (1, 2, 3, 4) for block in (0, 1)
    )
    assert facts[VIT].blocks == tuple(f"blocks.{number}" for number in range(12))
    assert (facts[VIT].image, facts[VIT].classes) == (224, 1000)
    assert facts[LLAMA].blocks == ("model.layers.0", "model.layers.1")
    assert facts[LLAMA].tasks == ("causal-lm", "inference", "generate")
    assert {"gradient_checkpointing", "sdpa"} <= set(facts[LLAMA].abilities)
    assert (facts[BERT].tasks[0], facts[BERT].positions, facts[BERT].vocabulary) == ("masked-lm", 512, 1000)
    assert (facts[BART].tasks[0], facts[BART].positions) == ("seq2seq", 1024)
    assert (facts[SSD].tasks[0], facts[SSD].image, facts[SSD].classes) == ("detection", 320, 91)
    assert facts["torchvision/fcn_resnet50"].tasks == ("inference",)
    assert (facts[UNET].tasks[0], facts[UNET].image, facts[UNET].channels) == ("diffusion", 128, 4)
    assert (facts["hf//saved"].kind, facts["hf//saved"].positions) == ("GPT2LMHeadModel", 1024)
    assert facts["hf/some/one?n_layer=3"].blocks == tuple(f"transformer.h.{number}" for number in range(3))
    assert facts["diffusers/some/line"].image == 32
    assert facts["jobs_of_mine:small"].layers == {"Linear": 1, "ReLU": 1}
    assert len(facts) == len(GOOD) + 3


@pytest.mark.virtual
def test_models_that_cannot_be_had_say_why(told: dict[str, Any]):
    errors = {text: value["error"]["text"] for text, value in told.items() if "error" in value}

    assert {text: words for text, words in BAD.items() if words not in errors[text]} == {}
    assert "has no config.json" in errors["hf//empty"]


def test_a_missing_library_says_what_installs_it():
    with pytest.raises(MissingLibraryError, match="pip install no_such_library") as caught:
        library("no_such_library", parse_source("timm/resnet18"))

    assert caught.value.command == "pip install no_such_library"


def test_a_library_that_misses_another_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "broken_library.py").write_text("import nothing_of_that_name")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(SourceError, match="nothing_of_that_name"):
        library("broken_library", parse_source("timm/resnet18"))
