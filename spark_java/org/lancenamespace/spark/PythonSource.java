package org.lancenamespace.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceWriteInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.write.WriteBuilder;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's Python data sources, with the functions of tasks from the Python process of the catalog.
 *
 * <p>Spark would start a Python process for each plan of a scan and of a write, to get the functions. This is the only
 * class that uses internal classes of Spark for that.
 */
final class PythonSource extends PythonDataSourceV2 {
  private static final String NAME = "lance";

  private final UserDefinedPythonDataSource source;

  private PythonSource(Settings settings, byte[] writeFunction) {
    this.source = new PlannedSource(settings, writeFunction);
    setShortName(NAME);
  }

  @Override
  public UserDefinedPythonDataSource source() {
    return source;
  }

  static Batch reader(Settings settings, StructType schema, byte[] function, List<byte[]> partitions) {
    PythonSource source = new PythonSource(settings, null);
    source.setReadInfo(
        new PythonDataSourceReadInfo(function, CollectionConverters.asScala(new ArrayList<>(partitions)).toSeq()));
    PythonTable table = new PythonTable(source, NAME, schema);
    return table.newScanBuilder(CaseInsensitiveStringMap.empty()).build().toBatch();
  }

  static BatchWrite writer(Settings settings, LogicalWriteInfo info, byte[] function) {
    SupportsWrite table = new PythonTable(new PythonSource(settings, function), NAME, info.schema());
    WriteBuilder builder = table.newWriteBuilder(info);
    return UnmeasuredBatches.of(builder.build().toBatch(), info.schema());
  }

  /** Where executors find pyspark if it is not among the packages of their interpreter. */
  static String sparkPythonPath() {
    return PythonUtils.sparkPythonPath();
  }

  /** Names of the packages that Spark has sent to the executors, as PySpark passes them to its own tasks. */
  static List<String> sentPackages() {
    List<String> names = new ArrayList<>();
    for (String file : SparkEnv.get().conf().get("spark.submit.pyFiles", "").split(",")) {
      String name = file.substring(file.lastIndexOf('/') + 1);
      if (name.endsWith(".zip") || name.endsWith(".egg")) {
        names.add(name);
      }
    }
    return names;
  }

  /** A Python data source whose write function is known. */
  private static final class PlannedSource extends UserDefinedPythonDataSource {
    private final byte[] writeFunction;

    PlannedSource(Settings settings, byte[] writeFunction) {
      super(new SimplePythonFunction(new byte[0], Map.of(), sentPackages(), settings.workerPython(),
          settings.pythonVersion(), List.of(), null));
      this.writeFunction = writeFunction;
    }

    @Override
    public PythonDataSourceWriteInfo createWriteInfoInPython(String provider, StructType schema,
        CaseInsensitiveStringMap options, boolean overwrite, boolean isStreaming) {
      return new PythonDataSourceWriteInfo(writeFunction, new byte[0]);
    }
  }
}
