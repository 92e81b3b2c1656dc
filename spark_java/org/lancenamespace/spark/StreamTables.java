package org.lancenamespace.spark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.connector.catalog.Identifier;

/**
 * Tables that {@code writeStream.toTable} has created, and that are not there yet.
 *
 * <p>It creates the table, loads it, and starts the query with its options then, so a query with a wrong option would
 * leave an empty table. Here it gets the table as it would be. The sink makes it when it has checked the options.
 *
 * <p>A query has a session of its own, and so another catalog object than the one that created the table.
 */
final class StreamTables {
  private static final Map<Name, LanceTable> UNMADE = new ConcurrentHashMap<>();

  private record Name(Settings catalog, Identifier table) {}

  private StreamTables() {}

  /** Whether {@code toTable} has called. No argument tells, so the stack is asked. */
  static boolean isStarting() {
    return StackWalker.getInstance().walk(frames -> frames.anyMatch(
        frame -> frame.getMethodName().equals("toTable") && frame.getClassName().endsWith(".DataStreamWriter")));
  }

  static LanceTable put(LanceTable table) {
    UNMADE.put(new Name(table.calls().settings(), table.identifier()), table);
    return table;
  }

  /** The table as it would be, null if none of this name was put, or if it is there by now. */
  static LanceTable find(LanceCatalog catalog, Identifier table) {
    Name name = new Name(catalog.calls().settings(), table);
    if (UNMADE.containsKey(name) && catalog.tableExists(table)) {
      UNMADE.remove(name);
    }
    return UNMADE.get(name);
  }
}
