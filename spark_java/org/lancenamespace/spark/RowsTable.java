package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A metadata table, such as the history of a table. */
record RowsTable(String name, StructType type, JsonNode rows) implements SupportsRead {
  @Override
  public Column[] columns() {
    return columns(type);
  }

  @Override
  public String toString() {
    return name;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of(TableCapability.BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return () -> new RowsScan(name, type, rows);
  }

  /** The columns of a schema, with the comments in its metadata. */
  static Column[] columns(StructType type) {
    return Arrays.stream(type.fields())
        .map(field -> Column.create(field.name(), field.dataType(), field.nullable(),
            field.getComment().getOrElse(() -> null), (String) null))
        .toArray(Column[]::new);
  }
}
