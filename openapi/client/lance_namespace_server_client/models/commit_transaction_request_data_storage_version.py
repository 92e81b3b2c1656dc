from enum import StrEnum


class CommitTransactionRequestDataStorageVersion(StrEnum):
    VALUE_0 = "2.0"
    VALUE_1 = "2.1"
    VALUE_2 = "2.2"
    VALUE_3 = "2.3"

    def __str__(self) -> str:
        return str(self.value)
