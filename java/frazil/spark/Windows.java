package frazil.spark;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.GeographyType;
import org.apache.spark.sql.types.GeometryType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructType;

/**
 * bbox(shape, xmin, ymin, xmax, ymax): whether the box of a shape reaches into a window, on the plane of its
 * coordinates. A window whose west is greater than its east goes on at the other end.
 */
record Windows() implements UnboundFunction {
  static final String NAME = "bbox";
  private static final String FORM = "bbox(shape, xmin, ymin, xmax, ymax)";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return FORM;
  }

  @Override
  public BoundFunction bind(StructType input) {
    if (input.size() != 5) {
      throw new UnsupportedOperationException("it is " + FORM + ", not with " + input.size() + " arguments");
    }
    DataType shape = input.fields()[0].dataType();
    if (!(shape instanceof BinaryType || shape instanceof GeometryType || shape instanceof GeographyType)) {
      throw new UnsupportedOperationException("bbox does not take " + shape.simpleString());
    }
    for (int at = 1; at < 5; at++) {
      if (!(input.fields()[at].dataType() instanceof NumericType)) {
        throw new UnsupportedOperationException("the ends of a window are numbers: " + FORM);
      }
    }
    return new Bound(shape);
  }

  /** The function for shapes of one type. */
  record Bound(DataType shape) implements ScalarFunction<Boolean> {
    /** Spark's own values are GeometryVal and GeographyVal in 4.1, BinaryView in 4.3: each has its bytes. */
    private static final ClassValue<Method> BYTES =
        new ClassValue<>() {
          @Override
          protected Method computeValue(Class<?> type) {
            try {
              return type.getMethod("getBytes");
            } catch (NoSuchMethodException missing) {
              throw new UnsupportedOperationException("bbox does not know shapes as " + type.getName(), missing);
            }
          }
        };

    @Override
    public String name() {
      return NAME;
    }

    @Override
    public DataType[] inputTypes() {
      DataType number = DataTypes.DoubleType;
      return new DataType[] {shape, number, number, number, number};
    }

    @Override
    public DataType resultType() {
      return DataTypes.BooleanType;
    }

    @Override
    public String canonicalName() {
      return "frazil." + NAME;
    }

    @Override
    public Boolean produceResult(InternalRow input) {
      for (int at = 0; at < 5; at++) if (input.isNullAt(at)) return null;
      Box box = new Box(wkb(input.get(0, shape)));
      double west = input.getDouble(1), east = input.getDouble(3);
      double south = Math.min(input.getDouble(2), input.getDouble(4));
      double north = Math.max(input.getDouble(2), input.getDouble(4));
      boolean rows = box.south <= north && box.north >= south;
      boolean columns = west <= east ? box.west <= east && box.east >= west : box.east >= west || box.west <= east;
      return rows && columns;
    }

    private ByteBuffer wkb(Object value) {
      if (value instanceof byte[] plain) return ByteBuffer.wrap(plain);
      try {
        byte[] bytes = (byte[]) BYTES.get(value.getClass()).invoke(value);
        return ByteBuffer.wrap(bytes, Integer.BYTES, bytes.length - Integer.BYTES); // behind the reference system
      } catch (ReflectiveOperationException failure) {
        throw new IllegalStateException(failure);
      }
    }
  }

  /** The coordinates that a shape in WKB lies between; an empty shape lies nowhere. */
  private static class Box {
    double west = Double.POSITIVE_INFINITY;
    double south = Double.POSITIVE_INFINITY;
    double east = Double.NEGATIVE_INFINITY;
    double north = Double.NEGATIVE_INFINITY;

    Box(ByteBuffer wkb) {
      add(wkb, 0);
    }

    private void add(ByteBuffer wkb, int depth) {
      if (depth > 32) throw new IllegalArgumentException("a shape is nested too deeply");
      wkb.order(wkb.get() == 1 ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN);
      int code = wkb.getInt();
      if ((code & 0x20000000) != 0) wkb.getInt(); // the number of a reference system
      int thousands = (code & 0x0FFFFFFF) / 1000;
      boolean hasZ = (code & 0x80000000) != 0 || thousands == 1 || thousands == 3;
      boolean hasM = (code & 0x40000000) != 0 || thousands == 2 || thousands == 3;
      int more = (hasZ ? 1 : 0) + (hasM ? 1 : 0);
      switch ((code & 0x0FFFFFFF) % 1000) {
        case 1 -> place(wkb, more);
        case 2 -> places(wkb, more);
        case 3, 17 -> {
          for (int left = wkb.getInt(); left > 0; left--) places(wkb, more);
        }
        case 4, 5, 6, 7, 15, 16 -> {
          for (int left = wkb.getInt(); left > 0; left--) add(wkb, depth + 1);
        }
        default -> throw new IllegalArgumentException("bbox does not take curves");
      }
    }

    private void places(ByteBuffer wkb, int more) {
      for (int left = wkb.getInt(); left > 0; left--) place(wkb, more);
    }

    private void place(ByteBuffer wkb, int more) {
      double x = wkb.getDouble(), y = wkb.getDouble();
      for (int left = more; left > 0; left--) wkb.getDouble();
      if (Double.isNaN(x) && Double.isNaN(y)) return;
      west = Math.min(west, x);
      east = Math.max(east, x);
      south = Math.min(south, y);
      north = Math.max(north, y);
    }
  }
}
