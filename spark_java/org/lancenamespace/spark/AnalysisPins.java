package org.lancenamespace.spark;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;

/**
 * The catalog version that the analysis of a query in this thread reads, by session.
 *
 * <p>Spark analyses a query in one context, and loads its tables one by one. The first one that is loaded decides the
 * catalog version of the others. Outside of an analysis nothing is pinned.
 */
final class AnalysisPins {
  private static final ThreadLocal<AnalysisPins> LAST = new ThreadLocal<>();

  private final WeakReference<Object> analysis;
  private final Map<String, Long> versions = new HashMap<>();

  private AnalysisPins(Object analysis) {
    this.analysis = new WeakReference<>(analysis);
  }

  /** The pinned version, or null if no table was loaded before. */
  static Long find(String session) {
    AnalysisPins pins = current();
    return pins == null ? null : pins.versions.get(session);
  }

  static void put(String session, long version) {
    AnalysisPins pins = current();
    if (pins != null) {
      pins.versions.put(session, version);
    }
  }

  private static AnalysisPins current() {
    AnalysisContext context = AnalysisContext.get();
    if (context.isDefault()) {
      LAST.remove();
      return null;
    }
    // The views of a query have contexts of their own, which share the cache of relations with that of the query.
    Object shared = context.relationCache();
    AnalysisPins pins = LAST.get();
    if (pins == null || pins.analysis.get() != shared) {
      pins = new AnalysisPins(shared);
      LAST.set(pins);
    }
    return pins;
  }
}
