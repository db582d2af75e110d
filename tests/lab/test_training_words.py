"""What is refused before anything is trained, and what is said of what fails."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from vramscope.errors import (
    MissingLibraryError,
    NoGpuError,
    RecipeError,
    RunError,
    SourceError,
    TorchError,
    UnknownCardError,
    UsageError,
)
from vramscope.jobs.facts import Facts
from vramscope.lab.training import article, data, devices, flowers, making, running
from vramscope.lab.training.ending import why_failed
from vramscope.lab.training.kept import Kept
from vramscope.lab.training.program import predicted_program, training_program
from vramscope.lab.training.request import Request, request_of
from vramscope.lab.training.running import Trained, pace, train
from vramscope.planning.store import Store

FACTS = Facts(
    tasks=("image-classification", "inference"),
    kind="ResNet",
    image=224,
    classes=102,
    layers={"Conv2d": 20, "Linear": 1},
)
pytest.importorskip("torchvision")


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"precision": ("fp23",)}, RecipeError, "did you mean fp32"),
        ({"precision": ()}, UsageError, "at least one"),
        ({"tune": ("frozen",)}, RecipeError, "did you mean freeze"),
        ({"tune": ("freeze:2",)}, RecipeError, "at most 1"),
        ({"tune": ("article-lora:8",)}, RecipeError, "as the article has it"),
        ({"optimizer": "adan"}, RecipeError, "did you mean adam"),
        ({"device": "tpu"}, UsageError, "did you mean cpu"),
        ({"gpu": "rtx-3061"}, UnknownCardError, "rtx-3060"),
        ({"batch": 0}, UsageError, "--batch 0: it must be at least 1"),
        ({"seed": -1}, UsageError, "--seed -1"),
        ({"lr": 0.0}, UsageError, "--lr 0"),
        ({"model": "mine:job"}, SourceError, "makes its own batches"),
    ],
)
def test_wrong_words_say_what_would_be_right(wrong: dict, error: type, said: str):
    with pytest.raises(error, match=said):
        request_of(Request(**wrong))


def test_words_that_say_the_same_make_one_cell():
    request = request_of(Request(precision=("fp32",), tune=("lora", "lora:8", "full")))

    assert request.cells == (("fp32", "lora:8"), ("fp32", "full"))


@pytest.mark.parametrize(
    ("text", "said"),
    [("flowers", "flowers102"), ("folder", "folder:PATH"), ("fake:3", "fake"), ("cifar10", "folder:PATH")],
)
def test_data_that_there_are_not_are_refused(text: str, said: str):
    with pytest.raises(UsageError, match=f"--data {text}: there is no .*{said}"):
        data.data_of(Request(data=text))


def test_a_folder_must_be_there_and_have_images_of_every_class(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no such folder"):
        data.data_of(Request(data=f"folder:{tmp_path}/none"))
    with pytest.raises(UsageError, match="has no folders with images"):
        data.data_of(Request(data=f"folder:{tmp_path}"))
    _images(tmp_path / "train", rose=2, lily=1)
    _images(tmp_path / "test", rose=1, tulip=1)
    with pytest.raises(UsageError, match=r"other classes \(lily, tulip\)"):
        data.data_of(Request(data=f"folder:{tmp_path}"))
    (tmp_path / "test" / "tulip").rename(tmp_path / "test" / "lily")
    found = data.data_of(Request(data=f"folder:{tmp_path}"))
    assert (found.classes, found.train, found.test) == (2, 3, 2)
    (tmp_path / "train" / "tulip").mkdir()
    with pytest.raises(UsageError, match="the class tulip has no images"):
        data.data_of(Request(data=f"folder:{tmp_path}"))


def test_images_that_cannot_be_read_are_named(tmp_path: Path):
    _images(tmp_path, rose=2)
    (tmp_path / "rose" / "torn.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "rose" / "none.png").symlink_to(tmp_path / "nowhere")

    with pytest.raises(
        UsageError, match=r"2 of 4 images cannot be read: .*none.png \(No such file.*torn.jpg"
    ):
        data.data_of(Request(data=f"folder:{tmp_path}"))


def _images(path: Path, **classes: int) -> None:
    image = pytest.importorskip("PIL.Image")
    for name, count in classes.items():
        (path / name).mkdir(parents=True)
        for number in range(count):
            image.new("RGB", (8, 8)).save(path / name / f"{number}.png")


def test_libraries_that_data_need_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(data, "find_spec", lambda name: None)

    with pytest.raises(MissingLibraryError, match="pip install torchvision"):
        data.data_of(Request())
    monkeypatch.setattr(data, "find_spec", lambda name: name == "torchvision" or None)
    with pytest.raises(MissingLibraryError, match="pip install scipy"):
        data.data_of(Request(data="flowers102"))


def test_flowers_without_a_network_say_the_other_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(flowers, "_FETCH", "raise OSError('Network is unreachable')")

    with pytest.raises(UsageError, match=r"OSError: Network is unreachable.*--data folder:PATH.*--data fake"):
        flowers.fetch(str(tmp_path / "data"))


def test_flowers_that_are_there_are_not_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(flowers, "_FETCH", "import sys; assert sys.argv[2] == 'look'")
    (tmp_path / "flowers-102").mkdir()

    flowers.fetch(str(tmp_path))


def test_a_device_that_is_not_here_is_no_device(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(devices, "_worth_looking", lambda: False)

    with pytest.raises(NoGpuError, match="--device cuda: there is no NVIDIA GPU"):
        devices.device_of("cuda")
    assert devices.device_of("auto").kind == "cpu"


@pytest.mark.parametrize(
    ("found", "asked", "kind"),
    [
        ({"cuda": "NVIDIA L4", "mps": False}, "auto", "cuda"),
        ({"cuda": None, "mps": True}, "auto", "mps"),
        ({"cuda": None, "mps": False}, "auto", "cpu"),
        ({"cuda": "NVIDIA L4", "mps": False}, "cpu", "cpu"),
    ],
)
def test_auto_takes_the_first_that_is_here(
    monkeypatch: pytest.MonkeyPatch, found: dict, asked: str, kind: str
):
    monkeypatch.setattr(devices, "_worth_looking", lambda: True)
    monkeypatch.setattr(devices, "_looked", lambda: found)

    assert devices.device_of(asked).kind == kind


def _program(device: str = "cpu", precision: str = "fp32", tune: str = "full", **changes: object) -> str:
    request = request_of(Request(size=32, **changes))
    return training_program(request, data.data_of(request), FACTS, device, precision, tune)


def test_programs_name_the_device_once():
    text = _program("mps", "amp-fp16")

    assert 'device = torch.device("mps")' in text
    assert "torch.autocast(device.type, dtype=torch.float16)" in text
    assert "torch.amp.GradScaler(device.type)" in text
    assert '"cuda"' not in text.replace('device.type == "cuda"', "")


def test_bf16_is_of_the_model_and_not_of_the_transforms():
    text = _program(precision="bf16", tune="lora:4")

    assert text.index("get_peft_model(model") < text.index("torch.set_default_dtype(torch.float32)")
    assert "images.to(device, torch.bfloat16)" in text


def test_slow_fp16_gradients_are_avoided_on_a_cpu_only():
    assert "mkldnn" in _program("cpu", "amp-fp16")
    assert "mkldnn" not in _program("cuda", "amp-fp16") + _program("cpu", "amp-bf16")


def test_the_learning_rate_is_the_asked_one():
    assert "torch.optim.Adam(trained, lr=0.001)" in _program()
    assert "torch.optim.SGD(trained, lr=0.5, momentum=0.9)" in _program(optimizer="momentum", lr=0.5)


def test_a_prediction_has_the_batches_of_the_article_s_data():
    request = request_of(Request(size=32))
    text = predicted_program(request, data.data_of(request), FACTS, "fp32", article.FREEZE)

    assert "Zeros(90, 90, 90, 30), Zeros(90, 90, 29)" in text
    assert "module.requires_grad = False" in text


def test_a_prediction_has_a_full_batch_however_few_images_there_are(tmp_path: Path):
    _images(tmp_path, rose=2, lily=3)
    request = request_of(Request(data=f"folder:{tmp_path}"))

    assert "Zeros(90), Zeros()" in predicted_program(request, data.data_of(request), FACTS, "fp32", "full")


@pytest.mark.parametrize(
    ("changes", "readings"),
    [
        ({}, [5.0, 5.0, 5.1, 3.0, 3.0, 3.2]),
        ({"classes": 10}, []),
        ({"batch": 64}, []),
        ({"optimizer": "adamw"}, []),
        ({"model": "resnet50"}, []),
    ],
)
def test_the_article_s_readings_are_of_its_own_sizes(changes: dict, readings: list[float]):
    own = {"model": "resnet18", "classes": 102, "batch": 90, "image": 224, "optimizer": "adam"}

    found = article.readings(**{**own, **changes})

    assert list(found.values()) == readings
    assert not found or next(iter(found)) == ("fp32", "full")


def test_a_step_is_counted_on_a_card_only():
    assert "FlopCounterMode" in _program("cuda")
    assert "FlopCounterMode" not in _program("cpu") + _program("mps")


@pytest.mark.parametrize(
    ("device", "flops", "seconds"),
    [
        (devices.Device("cuda", "NVIDIA GeForce RTX 3060"), 10**12, 0.0785),
        (devices.Device("cuda", "NVIDIA GeForce RTX 9999"), 10**12, None),
        (devices.Device("cuda", "NVIDIA GeForce RTX 3060"), None, None),
        (devices.Device("cpu", "Xeon"), 10**12, None),
    ],
)
def test_no_step_is_shorter_than_the_card_s_arithmetic(
    device: devices.Device, flops: int | None, seconds: float | None
):
    ran = Trained(flops=flops, convolution_flops=9 * 10**11)

    found = making.shortest_step_seconds(device, "fp32", ran)

    assert found == (seconds and pytest.approx(seconds, rel=0.01))


def test_a_count_that_fails_is_no_failure_of_the_training():
    trained = train(
        """print('{"at": "end"}'); raise RuntimeError('cannot count')""", "cpu", lambda told: None
    )

    assert (trained.why_not, trained.flops) == ("", None)


def test_models_that_are_no_classifiers_are_refused():
    request = request_of(Request())
    with pytest.raises(SourceError, match="no image classifier"):
        training_program(
            request, data.data_of(request), replace(FACTS, tasks=("causal-lm",)), "cpu", "fp32", "full"
        )


def test_a_process_is_heard_until_its_end():
    told: list = []
    said = """print('noise'); print('{"at": "train", "step": 1}'); print('[1]'); print('{"at": "end"}')"""

    trained = train(said, "cpu", told.append)

    assert (trained.why_not, told) == ("", [{"at": "train", "step": 1}, {"at": "end"}])


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("raise ValueError('no such thing')", "ValueError: no such thing"),
        ("import os; os._exit(3)", "its process ended with status 3 and said nothing"),
        (
            "import os; os.kill(os.getpid(), 9)",
            "its process was ended by SIGKILL; is the host's memory short?",
        ),
        ("pass", "its process ended with status 0"),
        ("raise MemoryError('out of memory')", "out of memory on cpu; try a smaller --batch"),
    ],
)
def test_a_process_that_fails_says_why(program: str, why: str):
    assert train(program, "cpu", lambda told: None).why_not.startswith(why)


def test_a_card_that_is_full_is_told_with_what_was_asked_for():
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has …"

    assert why_failed(1, f"Traceback\n{error}\n", "cuda") == (
        "out of memory on cuda when it asked for 2.25 GiB; try a smaller --batch or --image"
    )


def test_the_pace_is_of_full_batches_after_the_first_ones():
    trained = Trained(seconds=[[9.0, 5.0, 1.0, 0.2], [2.0, 1.0, 3.0, 0.2]])

    assert pace(trained, 10, 35) == (1.5, pytest.approx(10 / 1.5))
    assert pace(Trained(), 10, 35) == (None, None)
    assert pace(Trained(seconds=[[0.5]]), 10, 5) == (0.5, 10.0)


def test_a_cell_without_its_library_cannot_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(making, "find_spec", lambda name: None)
    monkeypatch.setattr(making, "facts_for", lambda source: FACTS)
    monkeypatch.setattr(making.Predictor, "predict", _no_card)

    grid = making.train_grid(Request(tune=("lora:4",), device="cpu", out=tmp_path / "kept.sqlite"))

    assert {cell.verdict for cell in grid.cells} == {"cannot run"}
    assert "needs peft, which is not installed" in grid.cells[0].why_not


def test_a_grid_is_trained_where_nothing_can_be_predicted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(making, "facts_for", lambda source: FACTS)
    monkeypatch.setattr(making.Predictor, "predict", _no_card)
    monkeypatch.setattr(making, "train", lambda program, device, on_told: Trained("out of memory"))

    grid = making.train_grid(Request(tune=("full",), device="cpu", out=tmp_path / "kept.sqlite"))

    assert {(cell.verdict, cell.predicted) for cell in grid.cells} == {("failed", None)}
    assert grid.notes[-1] == "nothing is predicted: no CUDA in this torch"
    with Kept(tmp_path / "kept.sqlite") as kept:
        assert kept.keys() == []  # what failed is tried again


def _no_card(*_: object) -> dict:
    raise TorchError("no CUDA in this torch")


def test_kept_cells_are_checked(tmp_path: Path):
    path = tmp_path / "kept.sqlite"
    with Kept(path) as kept:
        kept.put("a", {"loss": 1.5})
        kept.put("b", {"loss": 2.5})
    with sqlite3.connect(path) as file:
        file.execute("UPDATE cells SET value = '{}' WHERE key = 'b'")
    file.close()

    with Kept(path) as kept:
        assert kept.get("a") == {"loss": 1.5}
        assert kept.get("b") is None  # somebody changed it
        assert kept.get("c") is None


def test_a_file_of_something_else_is_left_alone(tmp_path: Path):
    (tmp_path / "text").write_text("hello, this is no database at all\n" * 40)
    with sqlite3.connect(tmp_path / "other") as file:
        file.execute("CREATE TABLE theirs (a)")
    file.close()

    Store(tmp_path / "plan").close()

    for name in ("text", "other", "plan"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(RunError, match=r"is no file of `lab train`.* choose another file with --out"):
            Kept(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    with pytest.raises(RunError, match="there is no folder"):
        Kept(tmp_path / "none" / "kept.sqlite")


def test_a_card_s_peaks_come_from_torch():
    said = """print('{"at": "memory", "allocated": 5, "reserved": 8}'); print('{"at": "end"}')"""

    found = running.train(said, "cuda", lambda told: None).memory

    assert found is not None
    assert (found.allocated_bytes, found.reserved_bytes, found.process_total_bytes) == (5, 8, None)
