"""Programs as text: in the order in which they must run, as people would write them."""

from __future__ import annotations

import ast

import pytest

from vramscope.jobs.script import Script
from vramscope.jobs.techniques.naming import names_code
from vramscope.jobs.wrapping import WIDTH, wrapped, wrapped_title


def trained(**parts: object) -> Script:
    """A script that trains a layer."""
    script = Script("A program", batch=["return torch.randn(4, 8, device=device)"], **parts)  # type: ignore[arg-type]
    script.build.append("model = torch.nn.Linear(8, 8)")
    script.loss.append("loss = model(inputs).square().mean()")
    script.optimizer += ["trained = list(model.parameters())", "optimizer = torch.optim.SGD(trained, lr=0.1)"]
    return script


def in_order(text: str, *pieces: str) -> bool:
    """Whether the pieces stand one after the other."""
    places = [text.find(piece) for piece in pieces]
    return -1 not in places and places == sorted(places)


def test_a_program_reads_from_top_to_bottom():
    text = trained().render()

    assert in_order(
        text,
        *(
            '"""A program"""',
            "import torch",
            "STEPS = 3",
            "with device:\n    model =",
            "optimizer =",
            "def batch():",
        ),
        *("for step in range(STEPS):", "    inputs = batch()", "    loss =", "    loss.backward()"),
        *("    optimizer.step()", "    optimizer.zero_grad()"),
    )


def test_variables_are_set_before_torch_is_imported():
    text = trained(environment={"A_VARIABLE": "1"}).render()

    assert in_order(text, "import os", 'os.environ.setdefault("A_VARIABLE", "1")', "import torch")


def test_imports_of_one_module_are_one_line():
    imports = {
        "import torch",
        "from a import zebra",
        "from a import Bear, CAT",
        "import copy",
        "import b as c",
    }
    text = trained(imports=imports).render()

    assert "import copy\n\nimport b as c\nimport torch\nfrom a import CAT, Bear, zebra\n" in text


def test_a_scaled_loss_is_unscaled_only_where_gradients_are_looked_at():
    plain, clipped = trained(scaler=True), trained(scaler=True, before_step=["clip()"])

    assert "unscale_" not in plain.render()
    assert in_order(
        clipped.render(),
        *("scaler.scale(loss).backward()", "scaler.unscale_(optimizer)", "clip()", "scaler.step(optimizer)"),
        *("scaler.update()", "optimizer.zero_grad()"),
    )


@pytest.mark.parametrize(
    ("scaler", "line"), [(False, "(loss / 4).backward()"), (True, "scaler.scale(loss / 4).backward()")]
)
def test_micro_batches_share_a_step(scaler: bool, line: str):
    text = trained(accumulate=4, scaler=scaler).render()

    assert in_order(
        text,
        "    for _ in range(4):",
        "        inputs = batch()",
        f"        {line}",
        "    optimizer.zero_grad()",
    )
    assert text.count("zero_grad()") == 1


def test_two_optimizers_step_and_none_leave_it_to_the_backward():
    two, none = trained(optimizers=["muon", "optimizer"]).render(), trained(optimizers=[]).render()

    assert in_order(two, "muon.step()", "optimizer.step()", "muon.zero_grad()", "optimizer.zero_grad()")
    assert ".step()" not in none
    assert none.rstrip().endswith("loss.backward()")


def test_a_program_that_trains_nothing_runs_within_its_contexts():
    script = Script(
        "Nothing",
        contexts=["torch.inference_mode()"],
        run=["model(inputs)"],
        batch=["return 1"],
        build=["model = abs"],
    )

    assert "    with torch.inference_mode():\n        model(inputs)\n" in script.render()


def test_nonsense_is_noticed_here():
    script = trained()
    script.model.append("model = = 1")

    with pytest.raises(SyntaxError):
        script.render()


def test_long_calls_have_an_argument_on_each_line():
    arguments = ", ".join(f"argument_{number}={number}" for number in range(12))
    code = f"def f():\n    value = call({arguments})\n"

    broken = wrapped(code)

    assert ast.dump(ast.parse(broken)) == ast.dump(ast.parse(code))
    assert max(map(len, broken.splitlines())) <= WIDTH
    assert "    value = call(\n        argument_0=0,\n" in broken


@pytest.mark.parametrize(
    "line",
    [
        "# " + "long " * 40,
        "value = " + " + ".join(map(str, range(60))),
        "call()",
        "x = [" + "1, " * 60 + "]",
        "if a(" + "b, " * 60 + "):",
    ],
)
def test_other_lines_stay_as_they_are(line: str):
    assert wrapped(line) == line


def test_long_titles_are_broken_between_words():
    assert wrapped_title("short") == '"""short"""'
    assert max(map(len, wrapped_title("word " * 60).splitlines())) <= WIDTH
    assert ast.parse(wrapped_title("word " * 60))


@pytest.mark.parametrize(
    "paths",
    [
        [f"layers.{number}" for number in range(80)],
        [f"layers.{number}" for number in range(0, 80, 3)],
        ["layers.0", "layers.1"],
        ["layers.1", "layers.0", "layers.2"],
        [f"stages.{stage}.blocks.{block}" for stage in range(4) for block in range(9)],
        ["layers.3", "layers.3", "layers.3"],
        ["only"],
    ],
)
def test_the_code_of_paths_gives_the_paths(paths: list[str]):
    code = names_code(paths)

    assert list(eval(code)) == paths
    assert max(map(len, code.splitlines())) <= WIDTH
