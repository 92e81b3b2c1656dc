package org.lancenamespace.spark;

import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A table in a catalog of this package, by its name in a query. */
record LanceNames(LanceCatalog catalog, Identifier table) {

  /** The table of a name, or null if the name is one of another catalog or of a temporary view. */
  static LanceNames find(SparkSession session, Seq<String> name) {
    if (session.sessionState().catalog().isTempView(name)) {
      return null;
    }
    List<String> parts = new ArrayList<>(CollectionConverters.asJava(name));
    Seq<String> view = AnalysisContext.get().catalogAndNamespace();
    CatalogPlugin catalog;
    List<String> namespace = new ArrayList<>();
    if (parts.size() > 1 && (Boolean) ask(session, "isCatalogRegistered", parts.get(0))) {
      catalog = (CatalogPlugin) ask(session, "catalog", parts.remove(0));
    } else if (view.isEmpty()) {
      catalog = (CatalogPlugin) ask(session, "currentCatalog");
      namespace.addAll(Arrays.asList((String[]) ask(session, "currentNamespace")));
    } else {
      catalog = (CatalogPlugin) ask(session, "catalog", view.head());
      namespace.addAll(CollectionConverters.asJava(view).subList(1, view.size()));
    }
    if (!(catalog instanceof LanceCatalog lance)) {
      return null;
    }
    String table = parts.remove(parts.size() - 1);
    String[] path = (parts.isEmpty() ? namespace : parts).toArray(new String[0]);
    return new LanceNames(lance, Identifier.of(path, table));
  }

  /** The names of the path of the table in the catalog, and its own. */
  List<String> path() {
    List<String> path = new ArrayList<>(Arrays.asList(table.namespace()));
    path.add(table.name());
    return path;
  }

  /** The name with that of the catalog, as SQL. */
  String quoted() {
    List<String> quoted = new ArrayList<>();
    quoted.add(quote(catalog.name()));
    path().forEach(part -> quoted.add(quote(part)));
    return String.join(".", quoted);
  }

  private static String quote(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  /** The namespace that a session uses in a catalog; none if it uses another catalog. */
  static String[] currentNamespace(SparkSession session, String catalog) {
    boolean isCurrent = ((CatalogPlugin) ask(session, "currentCatalog")).name().equalsIgnoreCase(catalog);
    return isCurrent ? (String[]) ask(session, "currentNamespace") : new String[0];
  }

  /** Call a method of Spark's catalogs by its name: they are a class in Spark 4.1, and an interface in later versions. */
  private static Object ask(SparkSession session, String method, String... arguments) {
    Class<?>[] types = new Class<?>[arguments.length];
    Arrays.fill(types, String.class);
    try {
      return CatalogManager.class.getMethod(method, types)
          .invoke(session.sessionState().catalogManager(), (Object[]) arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause() instanceof RuntimeException cause ? cause : new IllegalStateException(error.getCause());
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
