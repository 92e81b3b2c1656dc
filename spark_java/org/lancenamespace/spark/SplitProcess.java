package org.lancenamespace.spark;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkFiles;

/**
 * A Python process of an executor that reads splits for all of its tasks. Thread-safe.
 *
 * <p>Tasks connect to its Unix socket. It starts with the first of them, and ends with the executor, since its standard
 * input ends then.
 */
final class SplitProcess {
  private static final String LISTENS = "lance splits are served at ";
  private static final Map<Command, SplitProcess> RUNNING = new ConcurrentHashMap<>();

  private final Process process;
  private final UnixDomainSocketAddress address;

  /**
   * How the process is started.
   *
   * @param python interpreter
   * @param packages names of files that Spark has sent to the executors and Python imports from
   */
  record Command(String python, List<String> packages) implements Serializable {
    private ProcessBuilder builder() {
      ProcessBuilder builder = new ProcessBuilder(python, "-m", "spark_catalog.tables.split_server");
      // For executors that have pyspark from Spark only, not among the packages of the interpreter.
      builder.command().addAll(List.of(PythonSource.sparkPythonPath().split(File.pathSeparator)));
      List<String> path = new ArrayList<>();
      packages.forEach(name -> path.add(SparkFiles.get(name)));
      String inherited = builder.environment().get("PYTHONPATH");
      if (inherited != null && !inherited.isEmpty()) {
        path.add(inherited);
      }
      builder.environment().put("PYTHONPATH", String.join(File.pathSeparator, path));
      return builder.redirectErrorStream(true);
    }
  }

  private SplitProcess(Command command) {
    StringBuilder printed = new StringBuilder();
    String path = null;
    try {
      process = command.builder().start();
      BufferedReader output =
          new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
      while (path == null) {
        String line = output.readLine();
        if (line == null) {
          throw new IOException(printed.toString());
        }
        if (line.startsWith(LISTENS)) {
          path = line.substring(LISTENS.length());
        } else {
          printed.append(line).append('\n');
        }
      }
      System.err.print(printed);
      Thread log = new Thread(() -> output.lines().forEach(System.err::println), "lance-splits-log");
      log.setDaemon(true);
      log.start();
    } catch (IOException error) {
      throw new UncheckedIOException("Python process of an executor: expected to start " + command.python()
          + " -m spark_catalog.tables.split_server, found: " + error.getMessage(), error);
    }
    address = UnixDomainSocketAddress.of(path);
  }

  /** The running process of a command; a process that has ended is replaced. */
  static SplitProcess of(Command command) {
    return RUNNING.compute(command, (key, found) ->
        found != null && found.process.isAlive() ? found : new SplitProcess(key));
  }

  /** A connection on which the rows of a split arrive. */
  SocketChannel request(String read, String split) {
    try {
      SocketChannel connection = SocketChannel.open(address);
      try {
        ByteBuffer request = StandardCharsets.UTF_8.encode(read + "\n" + split + "\n");
        while (request.hasRemaining()) {
          connection.write(request);
        }
      } catch (IOException error) {
        connection.close();
        throw error;
      }
      return connection;
    } catch (IOException error) {
      throw new UncheckedIOException("Python process of an executor: " + error.getMessage(), error);
    }
  }
}
