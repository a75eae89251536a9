package frazil.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Column vectors over what the Parquet reader gives: rows left out, numbers and texts computed. */
class Vectors {
  private Vectors() {}

  /** A vector that looks at another one. */
  static class Delegating extends ColumnVector {
    final ColumnVector from;

    Delegating(DataType type, ColumnVector from) {
      super(type);
      this.from = from;
    }

    int at(int row) {
      return row;
    }

    /** The reader owns what is looked at, and uses it again for its next batch. */
    public void close() {}

    public void closeIfFreeable() {}

    public boolean hasNull() {
      return from.hasNull();
    }

    public int numNulls() {
      return from.numNulls();
    }

    public boolean isNullAt(int row) {
      return from.isNullAt(at(row));
    }

    public boolean getBoolean(int row) {
      return from.getBoolean(at(row));
    }

    public byte getByte(int row) {
      return from.getByte(at(row));
    }

    public short getShort(int row) {
      return from.getShort(at(row));
    }

    public int getInt(int row) {
      return from.getInt(at(row));
    }

    public long getLong(int row) {
      return from.getLong(at(row));
    }

    public float getFloat(int row) {
      return from.getFloat(at(row));
    }

    public double getDouble(int row) {
      return from.getDouble(at(row));
    }

    public ColumnarArray getArray(int row) {
      return from.getArray(at(row));
    }

    public ColumnarMap getMap(int row) {
      return from.getMap(at(row));
    }

    public Decimal getDecimal(int row, int precision, int scale) {
      return from.getDecimal(at(row), precision, scale);
    }

    public UTF8String getUTF8String(int row) {
      return from.getUTF8String(at(row));
    }

    public byte[] getBinary(int row) {
      return from.getBinary(at(row));
    }

    public ColumnVector getChild(int ordinal) {
      return from.getChild(ordinal);
    }
  }

  /** The rows that live, by their place in the batch. */
  static class Living extends Delegating {
    private final int[] places;

    Living(ColumnVector from, int[] places) {
      super(from.dataType(), from);
      this.places = places;
    }

    int at(int row) {
      return places[row];
    }

    public ColumnVector getChild(int ordinal) {
      return new Living(from.getChild(ordinal), places);
    }
  }

  /** The rows after some that were given before. */
  static class Shifted extends Delegating {
    private final int by;

    private Shifted(ColumnVector from, int by) {
      super(from.dataType(), from);
      this.by = by;
    }

    static ColumnVector of(ColumnVector from, int by) {
      return by == 0 ? from : new Shifted(from, by);
    }

    int at(int row) {
      return row + by;
    }

    public ColumnVector getChild(int ordinal) {
      return new Shifted(from.getChild(ordinal), by);
    }
  }

  /** A file's number plus the row's position in it; what the file itself stores wins. */
  static class Numbered extends Delegating {
    private final ColumnVector stored;
    private final long base;

    Numbered(ColumnVector positions, long base, ColumnVector stored) {
      super(DataTypes.LongType, positions);
      this.base = base;
      this.stored = stored;
    }

    public boolean hasNull() {
      return false;
    }

    public int numNulls() {
      return 0;
    }

    public boolean isNullAt(int row) {
      return false;
    }

    public long getLong(int row) {
      return stored == null || stored.isNullAt(row) ? base + from.getLong(row) : stored.getLong(row);
    }
  }

  /** What the file stores, a constant where it stores nothing. */
  static class Filled extends Delegating {
    private final long otherwise;

    Filled(ColumnVector stored, long otherwise) {
      super(DataTypes.LongType, stored);
      this.otherwise = otherwise;
    }

    public boolean hasNull() {
      return false;
    }

    public int numNulls() {
      return 0;
    }

    public boolean isNullAt(int row) {
      return false;
    }

    public long getLong(int row) {
      return from.isNullAt(row) ? otherwise : from.getLong(row);
    }
  }

  /** Sixteen bytes as the text of a UUID. */
  static class Uuids extends Delegating {
    Uuids(ColumnVector bytes) {
      super(DataTypes.StringType, bytes);
    }

    public UTF8String getUTF8String(int row) {
      return text(from.getBinary(row));
    }
  }

  static UTF8String text(byte[] uuid) {
    java.nio.ByteBuffer bytes = java.nio.ByteBuffer.wrap(uuid);
    return UTF8String.fromString(new java.util.UUID(bytes.getLong(), bytes.getLong()).toString());
  }
}
