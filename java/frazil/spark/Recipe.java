package frazil.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;

/** How one column of the result is made from the columns that were read and what is known of the file. */
public class Recipe implements Serializable {
  final String kind;
  final int at;
  final DataType type;

  Recipe(String kind, int at, DataType type) {
    this.kind = kind;
    this.at = at;
    this.type = type;
  }

  boolean isPlain(int place) {
    return kind.equals("stored") && at == place;
  }

  ColumnVector vector(ColumnVector[] read, ColumnVector positions, Slice slice, int rows) {
    if (kind.equals("stored")) return read[at];
    if (kind.equals("uuid")) return new Vectors.Uuids(read[at]);
    if (kind.equals("position")) return positions;
    if (kind.equals("key")) return new Vectors.Numbered(positions, slice.base, null);
    if (kind.equals("row id") && slice.firstRowId >= 0) {
      return new Vectors.Numbered(positions, slice.firstRowId, read[at]);
    }
    if (kind.equals("last updated") && slice.firstRowId >= 0) {
      return new Vectors.Filled(read[at], slice.sequence);
    }
    if (kind.equals("row id") || kind.equals("last updated")) return read[at];
    ConstantColumnVector made = new ConstantColumnVector(rows, type);
    if (kind.equals("file")) {
      made.setUtf8String(UTF8String.fromString(slice.name));
    } else if (kind.equals("spec")) {
      made.setInt(slice.spec);
    } else {
      made.setNull();
    }
    return made;
  }

  Object value(InternalRow read, int positionAt, Slice slice) {
    if (kind.equals("stored")) return read.isNullAt(at) ? null : read.get(at, type);
    if (kind.equals("uuid")) return read.isNullAt(at) ? null : Vectors.text(read.getBinary(at));
    if (kind.equals("position")) return Long.valueOf(read.getLong(positionAt));
    if (kind.equals("key")) return Long.valueOf(slice.base + read.getLong(positionAt));
    if (kind.equals("row id")) {
      if (!read.isNullAt(at)) return Long.valueOf(read.getLong(at));
      return slice.firstRowId < 0 ? null : Long.valueOf(slice.firstRowId + read.getLong(positionAt));
    }
    if (kind.equals("last updated")) {
      if (!read.isNullAt(at)) return Long.valueOf(read.getLong(at));
      return slice.firstRowId < 0 ? null : Long.valueOf(slice.sequence);
    }
    if (kind.equals("file")) return UTF8String.fromString(slice.name);
    if (kind.equals("spec")) return Integer.valueOf(slice.spec);
    return null;
  }
}
