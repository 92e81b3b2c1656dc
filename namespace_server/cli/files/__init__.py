"""Files of rows, as `load` takes them and `read` writes them.

formats       what a file is, by its name and first bytes
sources       where files are found and how they are opened
destinations  where files are written to
chunks        parts of text files that end with a row
dialects      delimiters and headers of CSV
csv_files     rows of CSV
json_rows     rows of JSON as they stand in a file
json_values   values of JSON in the types of columns
json_files    rows of JSON
arrow_files   rows of Parquet and Arrow
texts         values of texts, in the types of columns
guesses       what texts are where no type is known
shapes        what values have in common, and the type that holds all of them
type_texts    types that users write
schemas       schemas that users write
written       rows as the texts that are read again, and as files
row_writers   writers of files of rows, by format
refusals      what is wrong, by file and line
"""
