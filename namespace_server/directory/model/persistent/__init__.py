"""Immutable collections that hold many entries compactly and change one by one.

layered_map       entries that are loaded at once and then change one by one
sorted_names      names in order
name_index        names by parts of them
version_index     the versions of one table branch; `version_columns` holds most of them in typed columns
"""
