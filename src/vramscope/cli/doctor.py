"""`vramscope doctor`: whether the installed torch can be put on a virtual card, and what of it cannot."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from vramscope.virtual.doctor import Finding

ERROR_FOUND = 1


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def doctor(as_json: bool) -> int:
    """Check the compiler, the cache and the installed torch. Status 1 if predictions cannot work."""
    from vramscope.virtual.doctor import diagnose

    findings = list(diagnose().findings)
    if as_json:
        print(json.dumps([_values(each) for each in findings], indent=2), file=sys.stdout)
    else:
        print("\n".join(map(_line, findings)), file=sys.stdout)
    return ERROR_FOUND if any(each.level == "error" for each in findings) else 0


def _values(finding: Finding) -> dict[str, str | None]:
    return {
        "level": finding.level,
        "what": finding.what,
        "detail": finding.detail or None,
        "try": finding.try_ or None,
    }


def _line(finding: Finding) -> str:
    detail = f": {finding.detail}" if finding.detail else ""
    way_out = f"\n         try: {finding.try_}" if finding.try_ else ""
    return f"{finding.level:<7}  {finding.what}{detail}{way_out}"
