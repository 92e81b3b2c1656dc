from enum import StrEnum


class AttemptedObjectKind(StrEnum):
    CATALOG = "catalog"
    NAMESPACE = "namespace"
    SERVER = "server"
    TABLE = "table"

    def __str__(self) -> str:
        return str(self.value)
