"""A report as a JSON text, ``vramscope.report/1`` (docs/report-schema.md), and back."""

from __future__ import annotations

import json

from vramscope.errors import RunError
from vramscope.run.report import Report
from vramscope.run.schema import report_from_dict, report_to_dict


def to_json(report: Report) -> str:
    """The report, two spaces of indent, with a line end."""
    return json.dumps(report_to_dict(report), indent=2) + "\n"


def from_json(text: str) -> Report:
    """The report in a text that to_json made; RunError for any other."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RunError(f"this is no JSON, or was cut off: {error}") from error
    return report_from_dict(document)
