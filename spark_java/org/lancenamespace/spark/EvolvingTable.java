package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsSchemaEvolution;
import org.apache.spark.sql.connector.catalog.TableChange;

/** A table to which writes can add columns, by an interface that Spark has from 4.2 on. */
final class EvolvingTable extends LanceTable implements SupportsSchemaEvolution {
  EvolvingTable(Calls calls, Identifier table, ReadRequest request, JsonNode found) {
    super(calls, table, request, found);
  }

  /** Types of columns and fields of structs stay as they are: values are cast, or refused. */
  @Override
  public boolean supportsColumnChange(TableChange.ColumnChange change) {
    return TableChanges.isNewColumn(change);
  }
}
