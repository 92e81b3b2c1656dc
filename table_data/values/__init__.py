"""Values of rows as JSON and as texts, both ways.

json_columns  values of JSON in the types of columns
texts         values of texts, in the types of columns
type_texts    types that users write
written       rows as the values and texts that are read again
misfits       what is no value, or no type
"""
