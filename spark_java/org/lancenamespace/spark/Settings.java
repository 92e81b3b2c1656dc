package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Settings of a catalog: the options below {@code spark.sql.catalog.NAME.}
 *
 * @param uri address of the server
 * @param token bearer token of all requests, or null
 * @param python the Python interpreter of the driver, by default that of the environment
 * @param workerPython the Python interpreter of the executors, by default that of the environment
 * @param pythonVersion major and minor version of both
 * @param isolation isolation of statements outside of transactions: {@code snapshot} or {@code serializable}
 * @param storage options of Lance for the object store of the tables
 */
record Settings(
    String uri,
    String token,
    String python,
    String workerPython,
    String pythonVersion,
    String isolation,
    Map<String, String> storage) {

  private static final String STORAGE = "storage.";
  private static final List<String> NAMES =
      List.of("isolation", "python", "python-version", "token", "uri", "worker-python");

  /** Throws {@code IllegalArgumentException} for a setting that there is not, and for a wrong value. */
  static Settings of(String catalog, CaseInsensitiveStringMap options) {
    String uri = options.get("uri");
    if (uri == null) {
      throw new IllegalArgumentException(
          "spark.sql.catalog." + catalog + ".uri: expected the address of a catalog server, found none");
    }
    String worker = workerPythonOfEnvironment();
    String python = options.getOrDefault("python", environment("PYSPARK_DRIVER_PYTHON", worker));
    Map<String, String> storage = new TreeMap<>();
    options.asCaseSensitiveMap().forEach((key, value) -> {
      String name = key.toLowerCase(Locale.ROOT);
      if (name.startsWith(STORAGE)) {
        storage.put(key.substring(STORAGE.length()), value);
      } else if (!NAMES.contains(name)) {
        throw new IllegalArgumentException("spark.sql.catalog." + catalog + "." + key + ": expected a setting among "
            + String.join(", ", NAMES) + " and " + STORAGE + "NAME");
      }
    });
    String isolation = options.getOrDefault("isolation", "snapshot");
    if (!isolation.equals("snapshot") && !isolation.equals("serializable")) {
      throw new IllegalArgumentException("spark.sql.catalog." + catalog + ".isolation: expected snapshot or serializable, "
          + "found '" + isolation + "'");
    }
    return new Settings(uri, options.get("token"), python, options.getOrDefault("worker-python", worker),
        options.getOrDefault("python-version", "3.11"), isolation, storage);
  }

  static String workerPythonOfEnvironment() {
    return environment("PYSPARK_PYTHON", "python3");
  }

  private static String environment(String name, String absent) {
    String found = System.getenv(name);
    return found == null || found.isEmpty() ? absent : found;
  }

  ObjectNode forPython() {
    ObjectNode json = PythonProcess.JSON.createObjectNode();
    json.put("uri", uri).put("token", token).put("isolation", isolation);
    ObjectNode options = json.putObject("storage_options");
    storage.forEach(options::put);
    return json;
  }
}
