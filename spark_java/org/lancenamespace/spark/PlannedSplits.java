package org.lancenamespace.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A data source of rows whose splits Python has planned. The option {@code plan} is what {@code scan_frame} gives. */
public final class PlannedSplits implements TableProvider {
  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    throw new UnsupportedOperationException("planned splits: expected a schema, found none");
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    try {
      String plan = new CaseInsensitiveStringMap(properties).get("plan");
      return new PlannedTable(schema, PythonProcess.JSON.readTree(plan));
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException("planned splits: " + error.getMessage(), error);
    }
  }

  private record PlannedTable(StructType type, JsonNode plan) implements SupportsRead {
    @Override
    public String name() {
      return plan.get("name").asText();
    }

    @Override
    public Column[] columns() {
      return RowsTable.columns(type);
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return () -> new PlannedScan(type, plan);
    }
  }

  /** A scan of planned splits. Plans of JSON compare by value, so Spark can reuse what two equal scans read. */
  private record PlannedScan(StructType readSchema, JsonNode plan) implements SupportsReportStatistics {
    @Override
    public String description() {
      return plan.get("name").asText();
    }

    @Override
    public Statistics estimateStatistics() {
      return ScanSize.of(plan);
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
      return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public Batch toBatch() {
      return SplitBatch.of(workerPython(), plan);
    }

    private static String workerPython() {
      return SparkEnv.get().conf().get("spark.pyspark.python", Settings.workerPythonOfEnvironment());
    }
  }
}
