package frazil.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;

/** How one column of the result is made from the columns that were read and what is known of the file. */
record Recipe(Kind kind, int at, DataType type) implements Serializable {
  /** What a column holds; Python names them so, in lower case. */
  enum Kind {
    STORED,
    UUID,
    POSITION,
    KEY,
    ROW_ID,
    LAST_UPDATED,
    FILE,
    SPEC,
    NULL;

    static Kind of(String name) {
      return valueOf(name.toUpperCase(java.util.Locale.ROOT).replace(' ', '_'));
    }
  }

  boolean isUnchanged(int place) {
    return kind == Kind.STORED && at == place;
  }

  ColumnVector vector(ColumnVector[] read, ColumnVector positions, Slice slice, int rows) {
    boolean numbered = slice.firstRowId() >= 0;
    return switch (kind) {
      case STORED -> read[at];
      case UUID -> new Vectors.Uuids(read[at]);
      case POSITION -> positions;
      case KEY -> new Vectors.Numbered(positions, slice.base(), null);
      case ROW_ID -> numbered ? new Vectors.Numbered(positions, slice.firstRowId(), read[at]) : read[at];
      case LAST_UPDATED -> numbered ? new Vectors.Filled(read[at], slice.sequence()) : read[at];
      case FILE, SPEC, NULL -> constant(slice, rows);
    };
  }

  private ColumnVector constant(Slice slice, int rows) {
    ConstantColumnVector vector = new ConstantColumnVector(rows, type);
    switch (kind) {
      case FILE -> vector.setUtf8String(UTF8String.fromString(slice.name()));
      case SPEC -> vector.setInt(slice.spec());
      default -> vector.setNull();
    }
    return vector;
  }

  Object value(InternalRow read, int positionAt, Slice slice) {
    return switch (kind) {
      case STORED -> read.isNullAt(at) ? null : read.get(at, type);
      case UUID -> read.isNullAt(at) ? null : Vectors.text(read.getBinary(at));
      case POSITION -> read.getLong(positionAt);
      case KEY -> slice.base() + read.getLong(positionAt);
      case ROW_ID -> {
        if (!read.isNullAt(at)) yield read.getLong(at);
        yield slice.firstRowId() < 0 ? null : slice.firstRowId() + read.getLong(positionAt);
      }
      case LAST_UPDATED -> {
        if (!read.isNullAt(at)) yield read.getLong(at);
        yield slice.firstRowId() < 0 ? null : slice.sequence();
      }
      case FILE -> UTF8String.fromString(slice.name());
      case SPEC -> slice.spec();
      case NULL -> null;
    };
  }
}
