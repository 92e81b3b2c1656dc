package org.lancenamespace.spark;

import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.SmallIntVector;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.TimeStampMicroVector;
import org.apache.arrow.vector.TinyIntVector;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Numbers, dates and timestamps of an Arrow vector, read at their addresses.
 *
 * <p>Spark's {@code ArrowColumnVector} checks bounds and validity again for each value. Spark reads only the rows of
 * a batch and asks {@code isNullAt} first. The owner of the vector frees it.
 */
final class FixedWidthColumn extends ColumnVector {
  private final BaseFixedWidthVector vector;
  private long values;
  private long validity;
  private int nulls;

  FixedWidthColumn(FieldVector vector) {
    super(ArrowUtils.fromArrowField(vector.getField()));
    this.vector = (BaseFixedWidthVector) vector;
  }

  static boolean holds(FieldVector vector) {
    return vector instanceof BigIntVector || vector instanceof IntVector || vector instanceof SmallIntVector
        || vector instanceof TinyIntVector || vector instanceof Float8Vector || vector instanceof Float4Vector
        || vector instanceof DateDayVector || vector instanceof TimeStampMicroVector
        || vector instanceof TimeStampMicroTZVector;
  }

  /** Take the addresses of a batch that was loaded into the vector. */
  void load() {
    values = vector.getDataBufferAddress();
    validity = vector.getValidityBufferAddress();
    nulls = vector.getNullCount();
  }

  @Override
  public void close() {}

  @Override
  public boolean hasNull() {
    return nulls > 0;
  }

  @Override
  public int numNulls() {
    return nulls;
  }

  @Override
  public boolean isNullAt(int row) {
    return nulls > 0 && (Platform.getByte(null, validity + (row >> 3)) >> (row & 7) & 1) == 0;
  }

  @Override
  public byte getByte(int row) {
    return Platform.getByte(null, values + row);
  }

  @Override
  public short getShort(int row) {
    return Platform.getShort(null, values + 2L * row);
  }

  @Override
  public int getInt(int row) {
    return Platform.getInt(null, values + 4L * row);
  }

  @Override
  public long getLong(int row) {
    return Platform.getLong(null, values + 8L * row);
  }

  @Override
  public float getFloat(int row) {
    return Platform.getFloat(null, values + 4L * row);
  }

  @Override
  public double getDouble(int row) {
    return Platform.getDouble(null, values + 8L * row);
  }

  @Override
  public boolean getBoolean(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw new UnsupportedOperationException();
  }

  @Override
  public UTF8String getUTF8String(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public byte[] getBinary(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public ColumnVector getChild(int number) {
    throw new UnsupportedOperationException();
  }
}
