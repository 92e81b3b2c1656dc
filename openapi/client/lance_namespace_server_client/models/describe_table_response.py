from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.describe_table_response_metadata import DescribeTableResponseMetadata
    from ..models.json_arrow_schema import JsonArrowSchema
    from ..models.properties import Properties
    from ..models.table_basic_stats import TableBasicStats
    from ..models.vended_options import VendedOptions


T = TypeVar("T", bound="DescribeTableResponse")


@_attrs_define
class DescribeTableResponse:
    """
    Attributes:
        table (str | Unset): The last name of the id.
        namespace (list[str] | Unset): A path of names, outermost first; empty is the root.
        version (int | Unset):
        location (str | Unset): URI of the table.
        table_uri (str | Unset):
        schema (JsonArrowSchema | Unset):
        stats (TableBasicStats | Unset):
        metadata (DescribeTableResponseMetadata | Unset): Metadata kept in the table itself.
        properties (Properties | Unset): Names and values that the catalog keeps.
        storage_options (VendedOptions | Unset): Options of the object store, by Lance's names, for the client to reach
            the table; if the server hands out any. Temporary credentials go with `expires_at_millis`, milliseconds since
            1970.
        managed_versioning (bool | Unset): True if versions are committed through this server.
        is_only_declared (bool | Unset): True if the table has no version yet.
    """

    table: str | Unset = UNSET
    namespace: list[str] | Unset = UNSET
    version: int | Unset = UNSET
    location: str | Unset = UNSET
    table_uri: str | Unset = UNSET
    schema: JsonArrowSchema | Unset = UNSET
    stats: TableBasicStats | Unset = UNSET
    metadata: DescribeTableResponseMetadata | Unset = UNSET
    properties: Properties | Unset = UNSET
    storage_options: VendedOptions | Unset = UNSET
    managed_versioning: bool | Unset = UNSET
    is_only_declared: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        table = self.table

        namespace: list[str] | Unset = UNSET
        if not isinstance(self.namespace, Unset):
            namespace = self.namespace

        version = self.version

        location = self.location

        table_uri = self.table_uri

        schema: dict[str, Any] | Unset = UNSET
        if not isinstance(self.schema, Unset):
            schema = self.schema.to_dict()

        stats: dict[str, Any] | Unset = UNSET
        if not isinstance(self.stats, Unset):
            stats = self.stats.to_dict()

        metadata: dict[str, Any] | Unset = UNSET
        if not isinstance(self.metadata, Unset):
            metadata = self.metadata.to_dict()

        properties: dict[str, Any] | Unset = UNSET
        if not isinstance(self.properties, Unset):
            properties = self.properties.to_dict()

        storage_options: dict[str, Any] | Unset = UNSET
        if not isinstance(self.storage_options, Unset):
            storage_options = self.storage_options.to_dict()

        managed_versioning = self.managed_versioning

        is_only_declared = self.is_only_declared

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if table is not UNSET:
            field_dict["table"] = table
        if namespace is not UNSET:
            field_dict["namespace"] = namespace
        if version is not UNSET:
            field_dict["version"] = version
        if location is not UNSET:
            field_dict["location"] = location
        if table_uri is not UNSET:
            field_dict["table_uri"] = table_uri
        if schema is not UNSET:
            field_dict["schema"] = schema
        if stats is not UNSET:
            field_dict["stats"] = stats
        if metadata is not UNSET:
            field_dict["metadata"] = metadata
        if properties is not UNSET:
            field_dict["properties"] = properties
        if storage_options is not UNSET:
            field_dict["storage_options"] = storage_options
        if managed_versioning is not UNSET:
            field_dict["managed_versioning"] = managed_versioning
        if is_only_declared is not UNSET:
            field_dict["is_only_declared"] = is_only_declared

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.describe_table_response_metadata import DescribeTableResponseMetadata
        from ..models.json_arrow_schema import JsonArrowSchema
        from ..models.properties import Properties
        from ..models.table_basic_stats import TableBasicStats
        from ..models.vended_options import VendedOptions

        d = dict(src_dict)
        table = d.pop("table", UNSET)

        namespace = cast(list[str], d.pop("namespace", UNSET))

        version = d.pop("version", UNSET)

        location = d.pop("location", UNSET)

        table_uri = d.pop("table_uri", UNSET)

        _schema = d.pop("schema", UNSET)
        schema: JsonArrowSchema | Unset
        if isinstance(_schema, Unset):
            schema = UNSET
        else:
            schema = JsonArrowSchema.from_dict(_schema)

        _stats = d.pop("stats", UNSET)
        stats: TableBasicStats | Unset
        if isinstance(_stats, Unset):
            stats = UNSET
        else:
            stats = TableBasicStats.from_dict(_stats)

        _metadata = d.pop("metadata", UNSET)
        metadata: DescribeTableResponseMetadata | Unset
        if isinstance(_metadata, Unset):
            metadata = UNSET
        else:
            metadata = DescribeTableResponseMetadata.from_dict(_metadata)

        _properties = d.pop("properties", UNSET)
        properties: Properties | Unset
        if isinstance(_properties, Unset):
            properties = UNSET
        else:
            properties = Properties.from_dict(_properties)

        _storage_options = d.pop("storage_options", UNSET)
        storage_options: VendedOptions | Unset
        if isinstance(_storage_options, Unset):
            storage_options = UNSET
        else:
            storage_options = VendedOptions.from_dict(_storage_options)

        managed_versioning = d.pop("managed_versioning", UNSET)

        is_only_declared = d.pop("is_only_declared", UNSET)

        describe_table_response = cls(
            table=table,
            namespace=namespace,
            version=version,
            location=location,
            table_uri=table_uri,
            schema=schema,
            stats=stats,
            metadata=metadata,
            properties=properties,
            storage_options=storage_options,
            managed_versioning=managed_versioning,
            is_only_declared=is_only_declared,
        )

        describe_table_response.additional_properties = d
        return describe_table_response

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
