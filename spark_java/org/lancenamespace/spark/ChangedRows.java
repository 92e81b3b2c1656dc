package org.lancenamespace.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Changed rows as plain rows for Python: address and id of the old row, whether there is a new row, and its columns.
 *
 * <p>A deletion has no new row, an insertion has no old row, an update has both.
 */
final class ChangedRows implements Serializable {
  private static final int ADDED = 3;

  private final StructType row;
  private final StructType flat;
  private final InternalRow none;

  ChangedRows(StructType row) {
    this.row = row;
    StructType flat = new StructType()
        .add("__address", DataTypes.LongType, true)
        .add("__id", DataTypes.LongType, true)
        .add("__has_row", DataTypes.BooleanType, false);
    for (StructField field : row.fields()) {
      flat = flat.add(new StructField(field.name(), field.dataType(), true, field.metadata()));
    }
    this.flat = flat;
    this.none = new GenericInternalRow(new Object[row.size()]);
  }

  StructType schema() {
    return flat;
  }

  InternalRow deleted(InternalRow id) {
    return new JoinedRow(old(id, null, false), none);
  }

  InternalRow updated(InternalRow metadata, InternalRow id, InternalRow row) {
    return new JoinedRow(old(id, metadata, true), row);
  }

  InternalRow inserted(InternalRow row) {
    return new JoinedRow(old(null, null, true), row);
  }

  private static InternalRow old(InternalRow id, InternalRow metadata, boolean hasRow) {
    Object[] values = new Object[ADDED];
    values[0] = id == null ? null : id.getLong(0);
    values[1] = metadata == null || metadata.numFields() == 0 || metadata.isNullAt(0) ? null : metadata.getLong(0);
    values[2] = hasRow;
    return new GenericInternalRow(values);
  }

  LogicalWriteInfo info(LogicalWriteInfo original) {
    return new LogicalWriteInfo() {
      @Override
      public CaseInsensitiveStringMap options() {
        return original.options();
      }

      @Override
      public String queryId() {
        return original.queryId();
      }

      @Override
      public StructType schema() {
        return flat;
      }
    };
  }
}
