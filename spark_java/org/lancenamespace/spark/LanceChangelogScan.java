package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;

/** Changed rows, read by Python in the tasks at the version of each change and at the version before it. */
record LanceChangelogScan(LanceChangelog changes, StructType readSchema, JsonNode plan)
    implements SupportsReportStatistics {

  @Override
  public String description() {
    return "lance " + changes.name() + ", columns " + String.join(",", readSchema.fieldNames());
  }

  @Override
  public Statistics estimateStatistics() {
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return OptionalLong.of(plan.get("bytes").asLong());
      }

      @Override
      public OptionalLong numRows() {
        return OptionalLong.of(plan.get("rows").asLong());
      }
    };
  }

  @Override
  public Batch toBatch() {
    try {
      List<byte[]> partitions = new ArrayList<>();
      for (JsonNode partition : plan.get("partitions")) {
        partitions.add(partition.binaryValue());
      }
      byte[] function = plan.get("function").binaryValue();
      return PythonSource.reader(changes.calls().settings(), readSchema, function, partitions);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    throw new UnsupportedOperationException(changes.table()
        + ": STREAM … CHANGES: expected a batch query; the data source lance streams changes, with deletes=rows");
  }
}
