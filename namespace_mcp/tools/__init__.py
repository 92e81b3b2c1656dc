"""The tools: what they do, what they take and what they answer.

changing   changes of tables as one batch
rows       queries and searches of rows
tables     namespaces, tables and their versions
history    versions of the catalog: history and differences
batches    a list of changes as the operations of a batch
values     rows within bounds, as JSON
tool       `Tool`, the catalog of one call, and what arguments and answers are made of
"""
