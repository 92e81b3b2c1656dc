"""The catalog: a directory of Lance tables and the `__manifest` that says what is in it."""
