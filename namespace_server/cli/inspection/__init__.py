"""Inspection: describes the content of any file of a table, and its defects.

tables          `inspect_uri`: a file, or a version of a table, by path or URI
files           describes one file from its name and bytes; pure
manifests       describes a manifest
transactions    describes a transaction
messages        converts protobuf messages to plain values
text            renders a description for a terminal
"""

from namespace_server.cli.inspection.files import inspect_file
from namespace_server.cli.inspection.tables import inspect_uri
from namespace_server.cli.inspection.text import render_text

__all__ = ["inspect_file", "inspect_uri", "render_text"]
