package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.TransactionalCatalogPlugin;
import org.apache.spark.sql.connector.catalog.transactions.Transaction;
import org.apache.spark.sql.connector.catalog.transactions.TransactionInfo;

/** The catalog for Spark 4.2 and later: each writing query reads one catalog version and commits one batch. */
public final class LanceTransactionalCatalog extends LanceChangelogCatalog implements TransactionalCatalogPlugin {

  @Override
  public Transaction beginTransaction(TransactionInfo info) {
    ObjectNode arguments = calls().arguments().put("query", info.id());
    JsonNode begun = calls().call("begin_statement", arguments);
    return new LanceTransaction(name(), calls().in(begun.get("statement").asText()));
  }
}
