from enum import StrEnum


class Privilege(StrEnum):
    ALTER = "alter"
    CREATE = "create"
    DROP = "drop"
    GRANT = "grant"
    MAINTAIN = "maintain"
    OWN = "own"
    READ = "read"
    REFERENCE = "reference"
    SEE = "see"
    WRITE = "write"

    def __str__(self) -> str:
        return str(self.value)
