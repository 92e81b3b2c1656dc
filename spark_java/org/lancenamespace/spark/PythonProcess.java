package org.lancenamespace.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A Python process beside the driver that holds the client of the catalog and the state of transactions.
 *
 * <p>A request is one line of JSON, and so is its response; responses come in any order. Thread-safe. Catalogs with the
 * same settings share a process. It ends with the driver, since its standard input ends then.
 */
final class PythonProcess {
  static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<Settings, PythonProcess> RUNNING = new ConcurrentHashMap<>();

  private final Settings settings;
  private final Process process;
  private final BufferedWriter requests;
  private final Map<Long, CompletableFuture<JsonNode>> pending = new ConcurrentHashMap<>();
  private final AtomicLong last = new AtomicLong();

  private PythonProcess(Settings settings) {
    this.settings = settings;
    try {
      ProcessBuilder builder = new ProcessBuilder(settings.python(), "-m", "spark_catalog.sql.process");
      builder.redirectError(ProcessBuilder.Redirect.INHERIT);
      process = builder.start();
      requests = new BufferedWriter(new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8));
      // The first line holds the token, which must not stand among the arguments of a process.
      requests.write(JSON.writeValueAsString(settings.forPython()) + "\n");
      requests.flush();
    } catch (IOException error) {
      throw new IllegalStateException("Python process of the catalog: expected to start "
          + settings.python() + " -m spark_catalog.sql.process, found: " + error.getMessage(), error);
    }
    Thread reader = new Thread(this::readResponses, "lance-catalog-python");
    reader.setDaemon(true);
    reader.start();
  }

  /** The running process for these settings; a process that has ended is replaced. */
  static PythonProcess of(Settings settings) {
    return RUNNING.compute(settings, (key, found) ->
        found != null && found.process.isAlive() ? found : new PythonProcess(key));
  }

  /** The process has ended before it answered. */
  static final class Ended extends RuntimeException {
    Ended() {
      super("the Python process of the catalog has ended; its output is in the log of the driver");
    }
  }

  /** Send a request and wait for its response. Throws {@link Ended}. */
  JsonNode call(String operation, ObjectNode arguments) {
    long number = last.incrementAndGet();
    ObjectNode request = JSON.createObjectNode();
    request.put("id", number).put("operation", operation).set("arguments", arguments);
    CompletableFuture<JsonNode> response = new CompletableFuture<>();
    pending.put(number, response);
    try {
      synchronized (requests) {
        requests.write(JSON.writeValueAsString(request));
        requests.write('\n');
        requests.flush();
      }
    } catch (IOException error) {
      endAll();
    }
    if (!process.isAlive()) {
      endAll();
    }
    try {
      return response.get();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new CatalogException("Interrupted", operation + ": interrupted");
    } catch (ExecutionException error) {
      RUNNING.remove(settings, this);
      throw new Ended();
    } finally {
      pending.remove(number);
    }
  }

  private void readResponses() {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        JsonNode answer = JSON.readTree(line);
        CompletableFuture<JsonNode> waiting = pending.get(answer.get("id").asLong());
        if (waiting != null) {
          waiting.complete(answer);
        }
      }
    } catch (JsonProcessingException error) {
      process.destroy();
    } catch (IOException error) {
      // The process has ended; the calls that wait for it fail below.
    } finally {
      RUNNING.remove(settings, this);
      endAll();
    }
  }

  private void endAll() {
    for (CompletableFuture<JsonNode> waiting : pending.values()) {
      waiting.completeExceptionally(new Ended());
    }
  }
}
