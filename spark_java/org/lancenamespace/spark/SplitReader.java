package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Rows of one split. A batch is valid until the next one; the memory of the last one is freed by {@code close}. */
public final class SplitReader implements PartitionReader<ColumnarBatch> {
  private static final RootAllocator MEMORY = new RootAllocator();

  private final SocketChannel connection;
  private final BufferAllocator memory;
  private final ArrowStreamReader stream;
  private ColumnVector[] columns;
  private ColumnarBatch batch;
  private boolean closed;

  SplitReader(SocketChannel connection) {
    this.connection = connection;
    this.memory = MEMORY.newChildAllocator("split", 0, Long.MAX_VALUE);
    this.stream = new ArrowStreamReader(connection, memory);
  }

  /** Bytes of Arrow memory that readers of this process hold. */
  public static long allocatedBytes() {
    return MEMORY.getAllocatedMemory();
  }

  @Override
  public boolean next() throws IOException {
    if (!stream.loadNextBatch()) {
      requireComplete();
      return false;
    }
    List<FieldVector> vectors = stream.getVectorSchemaRoot().getFieldVectors();
    if (columns == null) {
      columns = vectors.stream().map(ArrowColumn::of).toArray(ColumnVector[]::new);
      batch = new ReusedBatch(columns);
    }
    for (ColumnVector column : columns) {
      ArrowColumn.load(column);
    }
    batch.setNumRows(stream.getVectorSchemaRoot().getRowCount());
    return true;
  }

  /** The line after the rows distinguishes a complete split from one that failed, or whose process has ended. */
  private void requireComplete() throws IOException {
    JsonNode status = PythonProcess.JSON.readTree(Channels.newInputStream(connection));
    if (status == null || status.isMissingNode()) {
      throw new IOException("the Python process that reads the splits of this executor has ended; its output is in the"
          + " log of the executor");
    }
    if (status.has("error")) {
      throw new IOException(status.get("error").asText());
    }
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  /** Free the memory and close the connection, by which the process stops reading. */
  @Override
  public void close() throws IOException {
    if (!closed) {
      closed = true;
      try (memory; connection) {
        stream.close(false);
      }
    }
  }

  /** Spark frees a batch that it has read, unless the batch refuses. The vectors of a stream hold its next batch. */
  private static final class ReusedBatch extends ColumnarBatch {
    ReusedBatch(ColumnVector[] columns) {
      super(columns);
    }

    @Override
    public void closeIfFreeable() {}
  }
}
