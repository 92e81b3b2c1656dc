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
blobs         columns whose bytes lie apart from the others of a data file
footer        the end of a data file: its rows, its columns and their types
string_file   data files of a few rows of strings
decoding      decodes messages that clients wrote, within a bound on their number
"""
