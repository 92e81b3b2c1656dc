"""Bytes <-> messages: manifest files, names, deletion files, references. Pure: no I/O happens here."""
