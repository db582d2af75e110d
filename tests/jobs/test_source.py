"""What people write as a source, and what it is taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from vramscope.errors import SourceError
from vramscope.jobs.fingerprint import fingerprint
from vramscope.jobs.libraries import modules_for
from vramscope.jobs.source import parse_source


@pytest.mark.parametrize(
    ("text", "library", "name"),
    [
        ("timm/resnet50.a1_in1k", "timm", "resnet50.a1_in1k"),
        ("torchvision/resnet18", "torchvision", "resnet18"),
        ("hf/Qwen/Qwen2.5-7B", "hf", "Qwen/Qwen2.5-7B"),
        ("hf/llama?hidden_size=64&num_hidden_layers=2", "hf", "llama"),
        ("diffusers/UNet2DModel?block_out_channels=32,64", "diffusers", "UNet2DModel"),
        ("a.b:make", "function", "a.b:make"),
    ],
)
def test_a_source_is_parsed_and_written_again(text: str, library: str, name: str):
    source = parse_source(text)

    assert (source.library, source.name, source.text) == (library, name, text)


@pytest.mark.parametrize(
    "text", ["", "resnet50", "timm/", "keras/resnet50", "a/b:c", "hf/llama?x", "hf/llama?2=3"]
)
def test_what_names_no_model_is_told_the_forms(text: str):
    with pytest.raises(SourceError, match=r"timm/NAME|key=value"):
        parse_source(text)


def test_values_are_numbers_truths_lists_and_texts():
    text = 'hf/llama?a=64&b=1e-5&c=true&d=False&e=None&f=gelu&g=32,64&h={"x":[1]}&i=a,b'

    assert parse_source(text).values == {
        "a": 64,
        "b": 1e-5,
        "c": True,
        "d": False,
        "e": None,
        "f": "gelu",
        "g": [32, 64],
        "h": {"x": [1]},
        "i": ["a", "b"],
    }


def test_a_changed_config_changes_the_fingerprint(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    before = fingerprint(parse_source(f"hf/{tmp_path}"))
    (tmp_path / "config.json").write_text('{"a": 1}')

    assert before != fingerprint(parse_source(f"hf/{tmp_path}"))
    assert fingerprint(parse_source("timm/resnet18")) == ""


def test_a_change_in_an_imported_module_of_the_same_folder_changes_the_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "mine"
    package.mkdir()
    files = {
        "__init__.py": "",
        "a.py": "from .b import c\nimport timm",
        "b.py": "from mine import d",
        "d.py": "x = 1",
        "e.py": "",
    }
    for name, code in files.items():
        (package / name).write_text(code)
    source = parse_source("mine.a:f")
    told = [fingerprint(source)]
    for name in ("e.py", "d.py", "b.py", "a.py"):
        (package / name).write_text(files[name] + "\n# changed")
        told.append(fingerprint(source))

    assert told[0] == told[1]
    assert len(set(told)) == 4
    assert modules_for(source)[-1] == "timm"
