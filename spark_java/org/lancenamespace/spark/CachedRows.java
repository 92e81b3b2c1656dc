package org.lancenamespace.spark;

import java.util.Collection;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;

/**
 * The rows that the active Spark session has cached of a table, and of queries over it.
 *
 * <p>Spark refreshes them after each statement that writes, also inside of a transaction. They are refreshed again when
 * the transaction ends: what it wrote may have been taken back, or committed beside the rows of others.
 */
final class CachedRows {
  private static final String NOT_FOUND = "TABLE_OR_VIEW_NOT_FOUND";

  private CachedRows() {}

  /**
   * Refresh the rows of tables. If one cannot be read now, nothing stays cached.
   *
   * <p>The rows of a table that is not there are not found again: another table of its name has another id.
   */
  static void refresh(String catalog, Collection<Identifier> tables) {
    if (((org.apache.spark.sql.classic.SparkSession) SparkSession.active()).sharedState().cacheManager().isEmpty()) {
      return;
    }
    for (Identifier table : tables) {
      String name = name(catalog, table);
      try {
        SparkSession.active().sql("REFRESH TABLE " + name);
      } catch (Exception error) {
        if (!(error instanceof AnalysisException found && NOT_FOUND.equals(found.getCondition()))) {
          SparkSession.active().catalog().clearCache();
        }
      }
    }
  }

  private static String name(String catalog, Identifier table) {
    Stream<String> path = Stream.concat(Stream.of(catalog), Stream.of(table.namespace()));
    return Stream.concat(path, Stream.of(table.name())).map(part -> "`" + part.replace("`", "``") + "`")
        .collect(Collectors.joining("."));
  }
}
