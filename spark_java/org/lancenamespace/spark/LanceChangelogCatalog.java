package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The catalog with CHANGES, and with columns that writes add, which Spark has from 4.2 on. */
public class LanceChangelogCatalog extends LanceCatalog {

  /** For Spark, which calls {@code initialize}. */
  public LanceChangelogCatalog() {}

  LanceChangelogCatalog(String name, Calls calls) {
    super(name, calls);
  }

  @Override
  boolean hasTransactions() {
    return true;
  }

  @Override
  LanceTable loaded(Identifier table, ReadRequest request, JsonNode found) {
    return new EvolvingTable(calls(), table, request, found);
  }

  @Override
  public Changelog loadChangelog(Identifier table, ChangelogContext context, CaseInsensitiveStringMap options) {
    ObjectNode arguments = calls().arguments(table);
    ChangelogRange range = context.range();
    if (range instanceof ChangelogRange.VersionRange versions) {
      arguments.set("start", version(versions.startingVersion(), range.startingBoundInclusive()));
      arguments.set("end", versions.endingVersion().map(end -> version(end, range.endingBoundInclusive())).orElse(null));
    } else if (range instanceof ChangelogRange.TimestampRange times) {
      arguments.set("start", timestamp(times.startingTimestamp(), range.startingBoundInclusive()));
      arguments.set("end", times.endingTimestamp().map(end -> timestamp(end, range.endingBoundInclusive())).orElse(null));
    } else {
      arguments.putNull("start").putNull("end");
    }
    JsonNode found = findChanges(table, arguments);
    return new LanceChangelog(calls(), table, found, Calls.schema(found.get("schema")));
  }

  private static ObjectNode version(String version, boolean isInclusive) {
    return bound("version", isInclusive).put("value", version);
  }

  private static ObjectNode timestamp(long microseconds, boolean isInclusive) {
    return bound("timestamp", isInclusive).put("value", microseconds);
  }

  private static ObjectNode bound(String kind, boolean isInclusive) {
    return PythonProcess.JSON.createObjectNode().put("kind", kind).put("inclusive", isInclusive);
  }
}
