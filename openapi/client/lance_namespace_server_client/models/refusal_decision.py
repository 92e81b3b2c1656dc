from enum import StrEnum


class RefusalDecision(StrEnum):
    DENIED = "denied"
    FAILED = "failed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return str(self.value)
