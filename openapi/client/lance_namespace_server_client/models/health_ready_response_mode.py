from enum import StrEnum


class HealthReadyResponseMode(StrEnum):
    READ_ONLY = "read-only"
    READ_WRITE = "read-write"

    def __str__(self) -> str:
        return str(self.value)
