"""A run as one HTML page: no network, no server, nothing beside the file."""

from __future__ import annotations

from vramscope.views.page.assemble import page_html

__all__ = ["page_html"]
