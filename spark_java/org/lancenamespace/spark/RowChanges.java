package org.lancenamespace.spark;

import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** DELETE, UPDATE and MERGE: rows are marked as deleted by their address, and new rows are written. */
record RowChanges(LanceTable table, Command command) implements SupportsDelta {
  @Override
  public String description() {
    return "lance " + command + " of " + table.name();
  }

  @Override
  public NamedReference[] rowId() {
    return new NamedReference[] {Expressions.column(LanceTable.ROW_ADDRESS)};
  }

  @Override
  public NamedReference[] requiredMetadataAttributes() {
    return table.hasStableRowIds()
        ? new NamedReference[] {Expressions.column(LanceTable.ROW_ID)}
        : new NamedReference[0];
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return table.newScanBuilder(options);
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new DeltaWriteBuilder() {
      @Override
      public DeltaWrite build() {
        return new Changes(info);
      }
    };
  }

  private final class Changes implements DeltaWrite {
    private final LogicalWriteInfo info;

    Changes(LogicalWriteInfo info) {
      this.info = info;
    }

    @Override
    public DeltaBatchWrite toBatch() {
      ChangedRows rows = new ChangedRows(info.schema());
      LogicalWriteInfo flat = rows.info(info);
      String mode = command.name().toLowerCase(java.util.Locale.ROOT);
      BatchWrite tasks = new StagedRows(table, mode, null, info.options()).write(flat);
      return new DeltaBatchWrite() {
        @Override
        public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo physical) {
          return new ChangedRowsFactory(tasks.createBatchWriterFactory(physical), rows);
        }

        @Override
        public void commit(WriterCommitMessage[] messages) {
          tasks.commit(messages);
        }

        @Override
        public void abort(WriterCommitMessage[] messages) {
          tasks.abort(messages);
        }
      };
    }
  }
}
