"""The tools: what they do, what they take and what they answer.

listing    all tools, in the order in which they are told
changing   changes of tables as one batch
rows       queries and searches of rows
tables     namespaces, tables and their versions
history    versions of the catalog: history and differences
batches    a list of changes as the operations of a batch
values     rows within bounds, as JSON
fields     what arguments have in common: names, versions, bounds
tool       `Tool`, and what arguments and answers are made of
"""
