from enum import StrEnum


class RefusedAttemptEvent(StrEnum):
    REFUSED_ATTEMPT = "refused_attempt"
    REFUSED_ATTEMPTS_DROPPED = "refused_attempts_dropped"
    REFUSED_ATTEMPTS_FOLDED = "refused_attempts_folded"

    def __str__(self) -> str:
        return str(self.value)
