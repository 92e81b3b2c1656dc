package org.lancenamespace.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.Identifier;

/**
 * How a query reads a table, as arguments of {@code load_table}: its options, a version, or a time. None for a table as
 * it is.
 *
 * <p>Spark hands a catalog the name of a table and a version, and its transactions hand over the name alone. So options
 * are part of a version, and a whole request is part of a name where Spark loads a table of a DataFrame again.
 */
record ReadRequest(ObjectNode arguments) {
  private static final String OPTIONS = "lance-read:";
  private static final String IN_NAME = "\u0001";

  static final ReadRequest NONE = new ReadRequest(PythonProcess.JSON.createObjectNode());

  /** The request in a version of Spark, which is one of the user or {@link #version()}. */
  static ReadRequest ofVersion(String version) {
    return version.startsWith(OPTIONS)
        ? new ReadRequest(parse(version.substring(OPTIONS.length())))
        : new ReadRequest(PythonProcess.JSON.createObjectNode().put("version", version));
  }

  static ReadRequest ofTimestamp(long microseconds) {
    return new ReadRequest(PythonProcess.JSON.createObjectNode().put("timestamp", microseconds));
  }

  /** The request in a name that {@link #in} has made, {@link #NONE} in any other. */
  static ReadRequest of(Identifier table) {
    int place = table.name().indexOf(IN_NAME);
    return place < 0 ? NONE : new ReadRequest(parse(table.name().substring(place + IN_NAME.length())));
  }

  /** The table of a name that {@link #in} has made, or any other. */
  static Identifier table(Identifier table) {
    int place = table.name().indexOf(IN_NAME);
    return place < 0 ? table : Identifier.of(table.namespace(), table.name().substring(0, place));
  }

  /** A name of a table with this request. */
  Identifier in(Identifier table) {
    return isNone() ? table : Identifier.of(table.namespace(), table.name() + IN_NAME + arguments);
  }

  /** A version of Spark with this request. */
  String version() {
    return OPTIONS + arguments;
  }

  boolean isNone() {
    return arguments.isEmpty();
  }

  /** Whether the request names a version by Spark's syntax for that, and not by options. */
  boolean isTravel() {
    return arguments.has("version") || arguments.has("timestamp");
  }

  private static ObjectNode parse(String json) {
    try {
      return (ObjectNode) PythonProcess.JSON.readTree(json);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException("version '" + OPTIONS + json + "': " + error.getMessage(), error);
    }
  }
}
