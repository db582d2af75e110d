"""A plan as one HTML page: no network, no script, nothing beside the file."""

from __future__ import annotations

from vramscope.views.plan_page.assemble import plan_page

__all__ = ["plan_page"]
