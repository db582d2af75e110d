"""Readers that go away, streams that were never open, and what Ctrl-C does: in real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
STATUS = "import sys; from vramscope.cli import main; main({!r})"
SAY = """
import sys
from vramscope.cli.console import say
say("one"); say("two")
sys.exit(7)
"""


def started(code: str, **streams: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, **streams)  # type: ignore[call-overload,no-any-return]


def closed_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def test_nobody_reads_stdout():
    writing = closed_pipe()

    process = started(STATUS.format(["gpus"]), stdout=writing, stderr=subprocess.PIPE)

    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 141


def test_nobody_reads_stderr():
    """A report that nobody reads changes no status."""
    process = started(SAY, stderr=closed_pipe())

    assert process.wait(timeout=60) == 7


@pytest.mark.parametrize("descriptor", [1, 2])
def test_a_stream_that_was_never_open(descriptor: int):
    process = started(SAY, preexec_fn=lambda: os.close(descriptor))

    assert process.wait(timeout=60) == 7


def test_closed_stdout_is_no_crash():
    process = started(STATUS.format(["--version"]), stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))

    assert b"Traceback" not in process.communicate(timeout=60)[1]


CHILD = """
import time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("child ends")
"""
INTERRUPTED = f"""
import os, signal, subprocess, sys
from vramscope.cli.interrupt import counting_interrupts
with counting_interrupts() as seen:
    child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    os.kill(child.pid, signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    print(child.stdout.read(), end="")
    child.wait()
print("parent goes on", seen.count)
"""


def test_the_child_gets_ctrl_c_and_the_parent_goes_on():
    process = started(INTERRUPTED, stdout=subprocess.PIPE)

    assert process.communicate(timeout=60)[0].splitlines() == [b"child ends", b"parent goes on 1"]
