"""All tools, in the order in which they are told."""

from __future__ import annotations

from typing import Final

from namespace_mcp.tools.changing import CHANGE_TOOLS
from namespace_mcp.tools.history import HISTORY_TOOLS
from namespace_mcp.tools.rows import ROW_TOOLS
from namespace_mcp.tools.tables import TABLE_TOOLS
from namespace_mcp.tools.tool import AnyTool

READING: Final[tuple[AnyTool, ...]] = (*TABLE_TOOLS, *HISTORY_TOOLS, *ROW_TOOLS)
"""The tools that only read."""
CHANGING: Final[tuple[AnyTool, ...]] = CHANGE_TOOLS
"""The tools that change the catalog."""
