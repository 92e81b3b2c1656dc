package org.lancenamespace.spark;

import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.transactions.Transaction;
import org.apache.spark.sql.connector.read.Scan;

/**
 * The transaction that Spark makes for one writing query.
 *
 * <p>Inside of a transaction of several statements, {@code commit} adds the changes to that transaction.
 */
final class LanceTransaction implements Transaction {
  private final LanceChangelogCatalog catalog;
  private final Calls calls;
  private boolean isOver;

  LanceTransaction(String name, Calls calls) {
    this.catalog = new LanceChangelogCatalog(name, calls);
    this.calls = calls;
  }

  @Override
  public CatalogPlugin catalog() {
    return catalog;
  }

  @Override
  public void commit() {
    isOver = true;
    calls.call("commit_statement", calls.arguments());
  }

  @Override
  public void abort() {
    isOver = true;
    calls.call("abort_statement", calls.arguments());
  }

  /** Nothing to do: a scan is recorded when it is planned, and not all queries register their scans. */
  @Override
  public boolean registerScans(Scan[] scans) {
    return true;
  }

  @Override
  public void close() {
    if (!isOver) {
      abort();
    }
  }
}
