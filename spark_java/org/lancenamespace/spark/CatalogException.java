package org.lancenamespace.spark;

import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;

/**
 * A refusal or failure of a catalog operation. {@code kind} is the name of the error in Python.
 *
 * <p>It is an IllegalArgumentException because pyspark shows these by their message, and others by their stack.
 */
public final class CatalogException extends IllegalArgumentException {
  private final String kind;
  private final String reason;

  CatalogException(String kind, String message) {
    super("[" + kind + "] " + message);
    this.kind = kind;
    this.reason = message;
  }

  /** Name of the error: NoSuchTable, RetryableConflict, CommitUnknown and so on. */
  public String kind() {
    return kind;
  }

  /** The exception that Spark expects where a table is missing or exists; this exception otherwise. */
  RuntimeException about(Identifier table) {
    switch (kind) {
      case "NoSuchTable":
        return sneaky(new NoSuchTableException(table));
      case "TableExists":
        return sneaky(new TableAlreadyExistsException(table));
      case "NoSuchNamespace":
        return sneaky(new NoSuchNamespaceException(table.namespace()));
      case "Unsupported":
        return new UnsupportedOperationException(reason);
      default:
        return this;
    }
  }

  /** The exception that Spark expects where a namespace is missing, exists or is not empty. */
  RuntimeException about(String[] namespace) {
    switch (kind) {
      case "NoSuchNamespace":
        return sneaky(new NoSuchNamespaceException(namespace));
      case "NamespaceExists":
        return sneaky(new NamespaceAlreadyExistsException(namespace));
      case "NamespaceNotEmpty":
        return sneaky(new NonEmptyNamespaceException(namespace));
      case "Unsupported":
        return new UnsupportedOperationException(reason);
      default:
        return this;
    }
  }

  /** Some of Spark's exceptions are checked, and not declared by all methods of its interfaces. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException sneaky(Throwable error) throws E {
    throw (E) error;
  }
}
