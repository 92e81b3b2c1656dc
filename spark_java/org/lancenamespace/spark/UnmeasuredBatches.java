package org.lancenamespace.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.internal.ReadOnlySQLConf;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * A write by Python whose tasks pass rows to it in batches that are limited by rows alone.
 *
 * <p>Spark measures a batch after every row to keep to a limit of bytes. That is not needed where the columns bound the
 * size of a row. Options of the session have precedence. The rule and its numbers are those of {@code
 * arrow_batches.py}, which limits the batches of graph writes.
 */
record UnmeasuredBatches(BatchWrite write, int rows) implements BatchWrite {
  private static final String BYTES_OPTION = "spark.sql.execution.arrow.maxBytesPerBatch";
  private static final String ROWS_OPTION = "spark.sql.execution.arrow.maxRecordsPerBatch";
  private static final long UNMEASURED = Integer.MAX_VALUE;
  private static final int FIXED_ROWS = 65_536;
  private static final int TEXT_ROWS = 4_096;
  private static final int COLUMNS = 64;
  private static final int ANY_SIZE = 0;

  /** The same write if its rows may have any size. */
  static BatchWrite of(BatchWrite write, StructType schema) {
    int rows = rowsOf(schema);
    return rows == ANY_SIZE ? write : new UnmeasuredBatches(write, rows);
  }

  private static int rowsOf(StructType schema) {
    List<DataType> kinds = new ArrayList<>();
    addColumns(schema, kinds);
    if (!kinds.stream().allMatch(kind -> isFixed(kind) || kind instanceof StringType)) {
      return ANY_SIZE;
    }
    int rows = kinds.stream().anyMatch(StringType.class::isInstance) ? TEXT_ROWS : FIXED_ROWS;
    return Math.max(1, rows * COLUMNS / Math.max(COLUMNS, kinds.size()));
  }

  /** Columns of structs count one by one. */
  private static void addColumns(StructType struct, List<DataType> kinds) {
    for (StructField field : struct.fields()) {
      if (field.dataType() instanceof StructType inner) {
        addColumns(inner, kinds);
      } else {
        kinds.add(field.dataType());
      }
    }
  }

  private static boolean isFixed(DataType type) {
    return type instanceof NumericType || type instanceof BooleanType || type instanceof DateType
        || type instanceof TimestampType || type instanceof TimestampNTZType || type instanceof DayTimeIntervalType;
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return new Factory(write.createBatchWriterFactory(info), rows);
  }

  @Override
  public boolean useCommitCoordinator() {
    return write.useCommitCoordinator();
  }

  @Override
  public void onDataWriterCommit(WriterCommitMessage message) {
    write.onDataWriterCommit(message);
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    write.commit(messages);
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    write.abort(messages);
  }

  private record Factory(DataWriterFactory python, int rows) implements DataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
      return new Writer(python.createWriter(partition, task), rows);
    }
  }

  private record Writer(DataWriter<InternalRow> python, int rows) implements DataWriter<InternalRow> {
    @Override
    public void writeAll(Iterator<InternalRow> input) throws IOException {
      Limits limits = new Limits(TaskContext.get(), rows);
      try {
        SQLConf.withExistingConf(limits, () -> {
          try {
            python.writeAll(new Input(input, limits));
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
          return null;
        });
      } catch (UncheckedIOException error) {
        throw error.getCause();
      }
    }

    @Override
    public void write(InternalRow row) throws IOException {
      python.write(row);
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      return python.commit();
    }

    @Override
    public void abort() throws IOException {
      python.abort();
    }

    @Override
    public void close() throws IOException {
      python.close();
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return python.currentMetricsValues();
    }
  }

  /** Options of the task, with the limits of this write until its first row is asked for. */
  private static final class Limits extends ReadOnlySQLConf {
    private final TaskContext task;
    private final int rows;
    private boolean ended;

    Limits(TaskContext task, int rows) {
      super(task);
      this.task = task;
      this.rows = rows;
    }

    @Override
    public int arrowMaxRecordsPerBatch() {
      return isOfSession(ROWS_OPTION) ? super.arrowMaxRecordsPerBatch() : rows;
    }

    @Override
    public long arrowMaxBytesPerBatch() {
      return isOfSession(BYTES_OPTION) ? super.arrowMaxBytesPerBatch() : UNMEASURED;
    }

    private boolean isOfSession(String option) {
      return ended || task.getLocalProperty(option) != null;
    }
  }

  /**
   * Rows of a task. Spark takes the limits of the write before the first one. A query may pass rows of another size to
   * Python to produce these, and such a step may begin only when its rows are asked for.
   */
  private record Input(Iterator<InternalRow> rows, Limits limits) implements Iterator<InternalRow> {
    @Override
    public boolean hasNext() {
      limits.ended = true;
      return rows.hasNext();
    }

    @Override
    public InternalRow next() {
      return rows.next();
    }
  }
}
