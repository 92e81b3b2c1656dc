from enum import StrEnum


class ErrorResponseOutcome(StrEnum):
    NOTHING_DONE = "nothing_done"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return str(self.value)
