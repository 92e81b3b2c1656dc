package org.lancenamespace.spark;

import java.util.List;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.SmallIntVector;
import org.apache.arrow.vector.TimeNanoVector;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.TimeStampMicroVector;
import org.apache.arrow.vector.TinyIntVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column over an Arrow vector whose owner loads and frees it. Its getters of numbers answer any value for a
 * row that is null.
 *
 * <p>Spark's {@code ArrowColumnVector} checks bounds and validity for each value. Spark reads only the rows of a batch
 * and asks {@code isNullAt} first, except where it copies an array: it reads all elements and marks the nulls later,
 * and {@code ArrowColumnVector} raises for a null. It is kept for the types that it answers null for.
 */
abstract class ArrowColumn extends ColumnVector {
  private final FieldVector vector;
  private long validity;
  private int nulls;

  private ArrowColumn(FieldVector vector) {
    super(ArrowUtils.fromArrowField(vector.getField()));
    this.vector = vector;
  }

  static ColumnVector of(FieldVector vector) {
    if (isFixedWidth(vector)) {
      return new FixedWidth((BaseFixedWidthVector) vector);
    }
    if (vector instanceof MapVector map) {
      return new Map(map);
    }
    if (vector instanceof ListVector list) {
      return new Array(list);
    }
    // Variants are structs in Arrow, too.
    boolean isStruct = ArrowUtils.fromArrowField(vector.getField()) instanceof StructType;
    return isStruct ? new Struct((StructVector) vector) : new ArrowColumnVector(vector);
  }

  private static boolean isFixedWidth(FieldVector vector) {
    return vector instanceof BigIntVector || vector instanceof IntVector || vector instanceof SmallIntVector
        || vector instanceof TinyIntVector || vector instanceof Float8Vector || vector instanceof Float4Vector
        || vector instanceof BitVector || vector instanceof DateDayVector || vector instanceof TimeNanoVector
        || vector instanceof TimeStampMicroVector || vector instanceof TimeStampMicroTZVector;
  }

  /** Take the addresses of a batch that was loaded into the vector of a column. */
  static void load(ColumnVector column) {
    if (column instanceof ArrowColumn arrow) {
      arrow.load();
    }
  }

  void load() {
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
    return nulls > 0 && !isSet(validity, row);
  }

  private static boolean isSet(long bits, int row) {
    return (Platform.getByte(null, bits + (row >> 3)) >> (row & 7) & 1) != 0;
  }

  @Override
  public boolean getBoolean(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public byte getByte(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public short getShort(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public int getInt(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long getLong(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public float getFloat(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public double getDouble(int row) {
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

  /** Numbers, booleans, dates and times, read at their addresses. */
  private static final class FixedWidth extends ArrowColumn {
    private final BaseFixedWidthVector vector;
    private long values;

    FixedWidth(BaseFixedWidthVector vector) {
      super(vector);
      this.vector = vector;
    }

    @Override
    void load() {
      super.load();
      values = vector.getDataBufferAddress();
    }

    @Override
    public boolean getBoolean(int row) {
      return isSet(values, row);
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
  }

  private static final class Array extends ArrowColumn {
    private final ListVector vector;
    private final ColumnVector elements;

    Array(ListVector vector) {
      super(vector);
      this.vector = vector;
      this.elements = of(vector.getDataVector());
    }

    @Override
    void load() {
      super.load();
      load(elements);
    }

    @Override
    public ColumnarArray getArray(int row) {
      if (isNullAt(row)) {
        return null;
      }
      int start = vector.getElementStartIndex(row);
      return new ColumnarArray(elements, start, vector.getElementEndIndex(row) - start);
    }
  }

  private static final class Map extends ArrowColumn {
    private final MapVector vector;
    private final ColumnVector keys;
    private final ColumnVector values;

    Map(MapVector vector) {
      super(vector);
      this.vector = vector;
      List<FieldVector> entry = ((StructVector) vector.getDataVector()).getChildrenFromFields();
      this.keys = of(entry.get(0));
      this.values = of(entry.get(1));
    }

    @Override
    void load() {
      super.load();
      load(keys);
      load(values);
    }

    @Override
    public ColumnarMap getMap(int row) {
      if (isNullAt(row)) {
        return null;
      }
      int start = vector.getElementStartIndex(row);
      return new ColumnarMap(keys, values, start, vector.getElementEndIndex(row) - start);
    }
  }

  private static final class Struct extends ArrowColumn {
    private final ColumnVector[] fields;

    Struct(StructVector vector) {
      super(vector);
      this.fields = vector.getChildrenFromFields().stream().map(ArrowColumn::of).toArray(ColumnVector[]::new);
    }

    @Override
    void load() {
      super.load();
      for (ColumnVector field : fields) {
        load(field);
      }
    }

    @Override
    public ColumnVector getChild(int number) {
      return fields[number];
    }
  }
}
