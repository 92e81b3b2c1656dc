"""What a file of a table says, for whoever has to understand a table that does not behave."""

from lance_core.inspection.files import inspect_file
from lance_core.inspection.tables import inspect_uri
from lance_core.inspection.text import render_text

__all__ = ["inspect_file", "inspect_uri", "render_text"]
