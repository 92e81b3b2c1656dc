"""Files of rows, as `load` takes them and `read` writes them.

formats       what a file is, by its name and first bytes
sources       where files are found and how they are opened
destinations  where files are written to
chunks        parts of text files that end with a row
dialects      delimiters and headers of CSV
csv_files     rows of CSV
json_rows     rows of JSON as they stand in a file
json_values   shapes of values of JSON
json_files    rows of JSON
arrow_files   rows of Parquet and Arrow
guesses       what texts are where no type is known
shapes        what values have in common, and the type that holds all of them
schemas       schemas that users write
row_writers   writers of files of rows, by format
refusals      what is wrong, by file and line

Values as JSON and texts are those of `table_data.values`.
"""
