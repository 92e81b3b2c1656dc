"""Queries of one version of a table, as pylance does them.

scans       from a request to what a scan of pylance takes
full_text   full-text queries
printed     full-text queries that come as the text that Lance prints of them
fusion      searches whose results are merged: vector and text, and matches that differ
key_places  the places of rows, by the values of a key column
uploading   rows that were read, written to a bucket as a file
searches    a search by a vector, or by words, as pylance takes it
"""
