package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/**
 * A table that CREATE or REPLACE makes. It appears with its rows in one batch, or not at all.
 *
 * <p>It ends its statement itself: Spark begins a transaction for these queries, but neither commits nor closes it.
 */
final class StagedLanceTable extends LanceTable implements StagedTable {
  StagedLanceTable(Calls calls, Identifier table, JsonNode found) {
    super(calls, table, ReadRequest.NONE, found);
  }

  @Override
  public void commitStagedChanges() {
    try {
      calls().call("commit_statement", calls().arguments());
    } catch (CatalogException error) {
      throw error.about(identifier());
    }
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return new CustomTaskMetric[0];
  }

  @Override
  public void abortStagedChanges() {
    calls().call("abort_statement", calls().arguments());
  }
}
