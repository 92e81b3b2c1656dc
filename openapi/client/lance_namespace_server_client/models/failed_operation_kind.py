from enum import StrEnum


class FailedOperationKind(StrEnum):
    INCOMPATIBLE = "incompatible"
    RETRYABLE = "retryable"

    def __str__(self) -> str:
        return str(self.value)
