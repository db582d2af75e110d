"""A run on a card that isn't there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vramscope.api.program import refuse_nested

if TYPE_CHECKING:
    from vramscope.run.run import Run
    from vramscope.virtual.program import Program
    from vramscope.virtual.setting import Setting


def run_program(program: Program, setting: Setting) -> Run:
    """Runs the program under the setting; the report and the journal that it was made from."""
    from vramscope.virtual.launch import launch
    from vramscope.virtual.predicted import predicted_run

    refuse_nested("predicted")
    finished = launch(
        program,
        setting.card,
        devices=setting.gpus,
        memory_bytes=setting.memory_bytes,
        outside=setting.outside,
        steps=setting.steps,
        assume=setting.assume,
        environment=setting.environment if setting.history else setting.variables,
    )
    return predicted_run(finished, program, setting)
