package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Splits that tasks read as columns.
 *
 * @param python the process that reads them
 * @param read what is the same for all splits, as the process takes it
 * @param splits the splits, as the process takes them
 */
record SplitBatch(SplitProcess.Command python, String read, List<String> splits) implements Batch {
  /** The batch of a plan of Python. */
  static SplitBatch of(String workerPython, JsonNode plan) {
    List<String> splits = new ArrayList<>();
    plan.get("splits").forEach(split -> splits.add(split.asText()));
    SplitProcess.Command python = new SplitProcess.Command(workerPython, PythonSource.sentPackages());
    return new SplitBatch(python, plan.get("read").asText(), splits);
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return splits.stream().map(SplitPartition::new).toArray(InputPartition[]::new);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new Factory(python, read);
  }

  private record SplitPartition(String split) implements InputPartition {}

  private record Factory(SplitProcess.Command python, String read) implements PartitionReaderFactory {
    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return new SplitReader(SplitProcess.of(python).request(read, ((SplitPartition) partition).split()));
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException("splits are read as columns");
    }
  }
}
