"""Compiling the stand-ins: once, whole, and with words where it cannot be."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from vramscope.errors import BuildError
from vramscope.virtual import build, symbols
from vramscope.virtual.machine import MACHINE_BYTES, MAGIC, MAX_DEVICES, SLOTS
from vramscope.virtual.wheel import find_wheel


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "vramscope" / "stand-ins"


def test_a_second_call_compiles_nothing(cache, capfd):
    first = build.ensure_built(find_wheel())
    assert "compiling the virtual card" in capfd.readouterr().err
    assert build.ensure_built(find_wheel()) == first
    assert capfd.readouterr().err == ""
    assert all(path.is_file() for path in first.preload)
    assert {p.name for p in first.driver_folder.iterdir()} == set(build.DRIVER_SONAMES.values())


def test_ten_processes_at_once_compile_once(cache):
    code = "from vramscope.virtual.build import ensure_built; from vramscope.virtual.wheel import find_wheel; print(ensure_built(find_wheel()).folder)"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(10)
    ]
    outcomes = [child.communicate() for child in children]

    assert {out.strip() for out, _ in outcomes} == {
        str(p) for p in cache.iterdir() if not p.name.startswith(".")
    }
    assert sum("compiling" in err for _, err in outcomes) == 1


def test_what_a_killed_build_leaves_is_never_used(cache):
    wheel = find_wheel()
    half = cache / f".{wheel.torch}-{build._key(wheel)}.left"
    half.mkdir(parents=True)
    (half / "vs-core.so").write_text("half written")

    built = build.ensure_built(wheel)

    assert built.folder != half
    assert len(list(built.folder.glob("vs-*.so"))) == len(built.preload)


def test_without_a_compiler(cache, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(BuildError, match=r"no C compiler was found; try `apt install gcc`"):
        build.ensure_built(find_wheel())


def test_a_compiler_that_fails_says_what_it_said(cache, monkeypatch, tmp_path):
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'vs.h: it is Monday' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(BuildError, match=r"(?s)failed:.*it is Monday.*vramscope doctor"):
        build.ensure_built(find_wheel())
    assert not [p for p in cache.iterdir() if not p.name.endswith(".lock")]


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BuildError, match=r"cannot keep the compiled stand-ins in .*set XDG_CACHE_HOME"):
        build.ensure_built(find_wheel())


def test_our_sources_compile_without_a_warning(tmp_path):
    wheel = find_wheel()
    flags = build._Build(tmp_path, wheel, "cc").flags
    sources = [*build.NATIVE.glob("*.c"), *(build.NATIVE / "core").glob("*.c")]
    for source in sources:
        done = subprocess.run(
            ["cc", *flags, "-Werror", "-fsyntax-only", str(source)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def test_every_symbol_of_the_real_libraries_is_there():
    wheel = find_wheel()
    stand_ins = build.ensure_built(wheel)
    for name, real in wheel.libraries.items():
        ours, node = symbols.exported(stand_ins.folder / build.FILE_NAME.format(name))
        theirs, their_node = symbols.exported(real)
        assert set(theirs) <= set(ours), name
        assert node == their_node, name


def test_the_driver_leaves_out_what_would_fool_a_linked_in_runtime():
    header = "CUresult cuInit(unsigned); CUresult cuGetProcAddress_v2(int);"
    assert symbols.driver_functions(header) == ["cuInit"]


def test_old_driver_names_mean_the_newest_version():
    # cuDNN's runtime compiler asks for the left one; a name that is there itself stays what it is.
    assert symbols.driver_aliases({"cuCtxPopCurrent_v2", "cuMemAlloc_v2", "cuMemAlloc"}) == {"cuCtxPopCurrent": "cuCtxPopCurrent_v2"}
    driver = build.ensure_built(find_wheel()).folder / build.FILE_NAME.format("cuda")
    assert {"cuCtxPopCurrent", "cuCtxPushCurrent", "cuLinkCreate", "cuLinkAddData"} <= set(symbols.exported(driver)[0])


def test_python_and_c_agree_on_the_machine_file(tmp_path):
    header = (build.NATIVE / "core" / "machine.h").read_text()
    assert int(re.search(r"VS_MACHINE_MAGIC UINT64_C\((0x[0-9A-Fa-f]+)\)", header)[1], 16) == MAGIC
    assert int(re.search(r"VS_MACHINE_SLOTS (\d+)", header)[1]) == SLOTS
    assert int(re.search(r"VS_MAX_DEVICES (\d+)", (build.NATIVE / "vs.h").read_text())[1]) == MAX_DEVICES
    program = '#include <stdio.h>\n#include "core/machine.h"\nint main(void) { printf("%zu", sizeof(struct vs_machine)); return 0; }'
    scratch = tmp_path / "size"
    subprocess.run(["cc", f"-I{build.NATIVE}", "-xc", "-", "-o", str(scratch)], input=program, text=True, check=True)
    assert int(subprocess.run([str(scratch)], capture_output=True, text=True, check=True).stdout) == MACHINE_BYTES
