package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Rows that the driver holds: counts, metadata tables and results of procedures. */
final class RowsScan implements LocalScan {
  private final String description;
  private final StructType schema;
  private final InternalRow[] rows;

  RowsScan(String description, StructType schema, JsonNode rows) {
    this.description = description;
    this.schema = schema;
    List<InternalRow> converted = new ArrayList<>();
    for (JsonNode row : rows) {
      Object[] values = new Object[schema.size()];
      for (int place = 0; place < values.length; place++) {
        values[place] = value(schema.fields()[place], row.get(place));
      }
      converted.add(new GenericInternalRow(values));
    }
    this.rows = converted.toArray(new InternalRow[0]);
  }

  RowsScan(String description, StructType schema, Object[] row) {
    this.description = description;
    this.schema = schema;
    this.rows = new InternalRow[] {new GenericInternalRow(row)};
  }

  private static Object value(StructField field, JsonNode value) {
    DataType type = field.dataType();
    if (value == null || value.isNull()) {
      return null;
    }
    if (type instanceof LongType || type instanceof TimestampType) {
      return value.asLong();
    }
    if (type instanceof BooleanType) {
      return value.asBoolean();
    }
    return UTF8String.fromString(value.isTextual() ? value.asText() : value.toString());
  }

  @Override
  public InternalRow[] rows() {
    return rows;
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public String description() {
    return description;
  }
}
