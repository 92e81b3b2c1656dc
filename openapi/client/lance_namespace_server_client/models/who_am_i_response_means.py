from enum import StrEnum


class WhoAmIResponseMeans(StrEnum):
    API_KEY = "api_key"
    NONE = "none"
    TOKEN = "token"

    def __str__(self) -> str:
        return str(self.value)
