"""The Lance table format: encodes and decodes its files and names. Pure: no module does I/O.

manifest      manifest files
outline       manifests whose fragments stay encoded
features      feature flags that readers and writers must know
naming        names and keys of all files of a table
refs          reference files of tags and branches
deletion      deletion files
bitmaps       Roaring bitmaps
arrow_file    the decompressed size of an Arrow IPC file
schema        which columns a data file has for given schema fields
"""
