package org.lancenamespace.spark;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/**
 * Writers of changed rows in the tasks.
 *
 * <p>Spark hands changes over one by one, and Python reads an iterator. So they are kept in a temporary file, and Python
 * reads it when the task commits.
 */
record ChangedRowsFactory(DataWriterFactory python, ChangedRows rows) implements DeltaWriterFactory {
  @Override
  public DeltaWriter<InternalRow> createWriter(int partition, long task) {
    return new Writer(python.createWriter(partition, task), rows);
  }

  private static final class Writer implements DeltaWriter<InternalRow> {
    private final DataWriter<InternalRow> python;
    private final ChangedRows rows;
    private final UnsafeProjection projection;
    private final RowFile file;

    Writer(DataWriter<InternalRow> python, ChangedRows rows) {
      this.python = python;
      this.rows = rows;
      this.projection = UnsafeProjection.create(rows.schema());
      this.file = new RowFile(rows.schema().size());
    }

    @Override
    public void delete(InternalRow metadata, InternalRow id) throws IOException {
      file.add(projection.apply(rows.deleted(id)));
    }

    @Override
    public void update(InternalRow metadata, InternalRow id, InternalRow row) throws IOException {
      file.add(projection.apply(rows.updated(metadata, id, row)));
    }

    @Override
    public void insert(InternalRow row) throws IOException {
      file.add(projection.apply(rows.inserted(row)));
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      python.writeAll(file.rows());
      return python.commit();
    }

    @Override
    public void abort() throws IOException {
      file.close();
      python.abort();
    }

    @Override
    public void close() throws IOException {
      file.close();
      python.close();
    }
  }
}
