package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriterCommitMessage;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A write whose tasks run Python. The driver hands their reports to the statement, which commits them.
 *
 * @param mode append, overwrite, overwrite_where or changes
 * @param where SQL filter of the rows that are replaced, or null
 * @param options options of the write
 */
record StagedRows(LanceTable table, String mode, String where, CaseInsensitiveStringMap options) {

  BatchWrite write(LogicalWriteInfo info) {
    ObjectNode arguments = arguments();
    arguments.set("schema", Calls.json(info.schema()));
    JsonNode planned = table.calls().call("plan_write", arguments);
    try {
      byte[] function = planned.get("function").binaryValue();
      return new Staging(PythonSource.writer(table.calls().settings(), info, function));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  void stage(WriterCommitMessage[] messages) {
    ObjectNode arguments = arguments();
    arguments.set("reports", reports(messages));
    table.calls().call("stage_rows", arguments);
  }

  void discard(WriterCommitMessage[] messages) {
    ObjectNode arguments = arguments();
    arguments.set("reports", reports(messages));
    table.calls().call("discard_rows", arguments);
  }

  private ObjectNode arguments() {
    ObjectNode arguments = table.calls().arguments(table.identifier()).put("mode", mode).put("where", where);
    arguments.set("ref", table.ref());
    Map<String, String> given = OptionsOfNames.given(options);
    given.remove(MergedSchemas.OPTION.toLowerCase(Locale.ROOT));
    arguments.set("options", Calls.strings(given));
    return arguments;
  }

  private static ArrayNode reports(WriterCommitMessage[] messages) {
    ArrayNode reports = PythonProcess.JSON.createArrayNode();
    for (WriterCommitMessage message : messages) {
      // The messages of tasks that did not report are null when a write is aborted.
      if (message instanceof PythonWriterCommitMessage python) {
        reports.add(python.pickledMessage());
      }
    }
    return reports;
  }

  /** Spark's write by Python, with another commit. */
  private final class Staging implements BatchWrite {
    private final BatchWrite tasks;

    Staging(BatchWrite tasks) {
      this.tasks = tasks;
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return tasks.createBatchWriterFactory(info);
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      stage(messages);
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
      discard(messages);
    }
  }
}
