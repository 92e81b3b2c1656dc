"""`LanceDataSource`: the data source `lance` as Spark calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from spark_catalog.options import ReadOptions
    from spark_catalog.tables.pinned import PinnedTable


class LanceDataSource(DataSource):  # type: ignore[misc] # the base class has no types
    """Tables of Lance by path, or by name in a catalog. Streams are of tables in a catalog.

    A DataFrame reads one version, which is resolved by `load()`; with an explicit schema, by its first execution. Spark
    makes an instance for each `load()` in a process of its own and passes its state on, so the version is part of the
    state. Modules are imported where they are needed: Spark imports this one to find the data sources on the path.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "lance"

    def schema(self) -> StructType:
        """The schema of the version that is read. Raises what `resolve` raises."""
        from spark_catalog.options import is_stream_read, stream_read_options
        from spark_catalog.source.batch_reader import read_schema

        schema = read_schema(self._pin(), self._reading())
        if is_stream_read(self.options) and stream_read_options(self.options).policy.has_types:
            from spark_catalog.change_feed.change_rows import with_change_columns

            return with_change_columns(schema)
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of `schema`."""
        from spark_catalog.options import refuse_stream_options
        from spark_catalog.source.batch_reader import LanceReader

        refuse_stream_options(self.options)
        return LanceReader(self._pin(), self._reading(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer that appends rows, or replaces all."""
        from spark_catalog.options import write_options
        from spark_catalog.source.batch_writer import LanceWriter, plan_write

        return LanceWriter(plan_write(write_options(self.options), schema, overwrite=overwrite))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A reader of the rows that versions add or change."""
        from spark_catalog.options import stream_read_options
        from spark_catalog.source.stream_source import LanceStreamReader

        return LanceStreamReader(stream_read_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """A sink that appends the rows of each epoch, or replaces all rows by them."""
        from spark_catalog.options import stream_write_options
        from spark_catalog.source.stream_sink import LanceStreamWriter, plan_stream

        return LanceStreamWriter(plan_stream(stream_write_options(self.options), schema, overwrite=overwrite))

    def __getstate__(self) -> dict[str, Any]:
        from spark_catalog.options import is_stream_write

        if not is_stream_write(self.options):
            self._pin()
        return self.__dict__

    def _pin(self) -> PinnedTable:
        """The version that is read, resolved once."""
        from spark_catalog.source.resolving import resolve

        pinned: PinnedTable | None = self.__dict__.get("pinned")
        if pinned is None:
            pinned = self.pinned = resolve(self._reading())
        return pinned

    def _reading(self) -> ReadOptions:
        from spark_catalog.options import read_options

        return read_options(self.options)
