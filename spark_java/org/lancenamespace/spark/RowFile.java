package org.lancenamespace.spark;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.Utils;

/** Rows in a temporary file below Spark's local directory: written first, then read once. Not thread-safe. */
final class RowFile implements Closeable {
  private static final int BUFFER = 1 << 18;

  private final int fields;
  private Path path;
  private DataOutputStream output;
  private DataInputStream input;
  private long written;

  RowFile(int fields) {
    this.fields = fields;
  }

  void add(UnsafeRow row) throws IOException {
    if (output == null) {
      path = Files.createTempFile(Path.of(Utils.getLocalDir(SparkEnv.get().conf())), "lance-changes", ".rows");
      output = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path), BUFFER));
    }
    byte[] bytes = row.getBytes();
    output.writeInt(bytes.length);
    output.write(bytes);
    written++;
  }

  /** All rows. The same row object is given again with other content, as Spark's iterators do. */
  Iterator<InternalRow> rows() throws IOException {
    if (output != null) {
      output.close();
      output = null;
      input = new DataInputStream(new BufferedInputStream(Files.newInputStream(path), BUFFER));
    }
    long total = written;
    return new Iterator<>() {
      private final UnsafeRow row = new UnsafeRow(fields);
      private long read;

      @Override
      public boolean hasNext() {
        return read < total;
      }

      @Override
      public InternalRow next() {
        if (!hasNext()) {
          throw new NoSuchElementException();
        }
        read++;
        try {
          byte[] bytes = new byte[input.readInt()];
          input.readFully(bytes);
          row.pointTo(bytes, bytes.length);
        } catch (IOException error) {
          throw new UncheckedIOException(error);
        }
        return row;
      }
    };
  }

  @Override
  public void close() throws IOException {
    if (output != null) {
      output.close();
      output = null;
    }
    if (input != null) {
      input.close();
      input = null;
    }
    if (path != null) {
      Files.deleteIfExists(path);
      path = null;
    }
  }
}
