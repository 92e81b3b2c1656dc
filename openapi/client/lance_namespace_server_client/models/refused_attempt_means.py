from enum import StrEnum


class RefusedAttemptMeans(StrEnum):
    API_KEY = "api_key"
    TOKEN = "token"

    def __str__(self) -> str:
        return str(self.value)
