package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.Statistics;

/** The size of a scan, as the plan states it. */
record ScanSize(OptionalLong sizeInBytes, OptionalLong numRows) implements Statistics {
  static ScanSize of(JsonNode plan) {
    return new ScanSize(OptionalLong.of(plan.get("bytes").asLong()), OptionalLong.of(plan.get("rows").asLong()));
  }
}
