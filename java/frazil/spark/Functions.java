package frazil.spark;

import java.math.BigInteger;
import java.time.LocalDate;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;

/** The partition transforms as functions of the catalog, by which Spark recognises equal partitioning. */
record Functions(String name) implements UnboundFunction {
  static final List<String> NAMES = List.of("bucket", "days", "hours", "months", "truncate", "years");
  private static final long DAY = 86_400_000_000L;
  private static final long HOUR = 3_600_000_000L;

  @Override
  public String description() {
    return isSized() ? name + "(width, column)" : name + "(column)";
  }

  private boolean isSized() {
    return name.equals("bucket") || name.equals("truncate");
  }

  @Override
  public BoundFunction bind(StructType input) {
    int arguments = isSized() ? 2 : 1;
    if (input.size() != arguments) {
      throw new UnsupportedOperationException("it is " + description() + ", not with " + input.size() + " arguments");
    }
    DataType type = input.fields()[arguments - 1].dataType();
    boolean isWhole = isWhole(type) || type instanceof LongType;
    boolean isTime = type instanceof TimestampType || type instanceof TimestampNTZType;
    boolean isText = type instanceof StringType || type instanceof BinaryType;
    boolean isKnown =
        switch (name) {
          case "bucket" -> isWhole || isTime || isText || type instanceof DateType || type instanceof DecimalType;
          case "truncate" -> isWhole || isText || type instanceof DecimalType;
          case "hours" -> isTime;
          default -> isTime || type instanceof DateType;
        };
    if (!isKnown) throw new UnsupportedOperationException(name + " does not take " + type.simpleString());
    if (isSized() && !isWhole(input.fields()[0].dataType())) {
      throw new UnsupportedOperationException("the width of " + name + " is a whole number");
    }
    return new Bound(name, type);
  }

  private static boolean isWhole(DataType type) {
    return type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType;
  }

  /** A transform of columns of one type. */
  record Bound(String name, DataType type) implements ScalarFunction<Object> {
    @Override
    public DataType[] inputTypes() {
      return takesWidth() ? new DataType[] {DataTypes.IntegerType, type} : new DataType[] {type};
    }

    private boolean takesWidth() {
      return name.equals("bucket") || name.equals("truncate");
    }

    @Override
    public DataType resultType() {
      return switch (name) {
        case "truncate" -> type;
        case "days" -> DataTypes.DateType;
        default -> DataTypes.IntegerType;
      };
    }

    /** Whole numbers of both widths fall into the same buckets. */
    @Override
    public String canonicalName() {
      boolean isSame = type instanceof IntegerType || type instanceof LongType;
      return "frazil." + name + "(" + (isSame ? "bigint" : type.catalogString().toLowerCase(Locale.ROOT)) + ")";
    }

    @Override
    public Object produceResult(InternalRow input) {
      int at = takesWidth() ? 1 : 0;
      if (input.isNullAt(at)) return null;
      Object value = input.get(at, type);
      return switch (name) {
        case "bucket" -> (hash(value) & Integer.MAX_VALUE) % width(input);
        case "truncate" -> truncated(value, width(input));
        case "hours" -> (int) Math.floorDiv((Long) value, HOUR);
        case "days" -> (int) day(value);
        case "months" -> (int) ((date(value).getYear() - 1970L) * 12 + date(value).getMonthValue() - 1);
        default -> date(value).getYear() - 1970;
      };
    }

    private int width(InternalRow input) {
      int width = input.isNullAt(0) ? 0 : input.getInt(0);
      if (width < 1) throw new IllegalArgumentException("the width of " + name + " is greater than 0, not " + width);
      return width;
    }

    private static long day(Object value) {
      return value instanceof Integer days ? days : Math.floorDiv((Long) value, DAY);
    }

    private static LocalDate date(Object value) {
      return LocalDate.ofEpochDay(day(value));
    }

    private static int hash(Object value) {
      if (value instanceof UTF8String text) return hash(text.getBytes());
      if (value instanceof byte[] bytes) return hash(bytes);
      if (value instanceof Decimal decimal) return hash(unscaled(decimal).toByteArray());
      return Murmur3_x86_32.hashLong(((Number) value).longValue(), 0);
    }

    private static int hash(byte[] bytes) {
      return Murmur3_x86_32.hashUnsafeBytes2(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 0);
    }

    private static BigInteger unscaled(Decimal decimal) {
      return decimal.toJavaBigDecimal().unscaledValue();
    }

    private static Object truncated(Object value, int width) {
      if (value instanceof UTF8String text) return text.substring(0, width);
      if (value instanceof byte[] bytes) return java.util.Arrays.copyOf(bytes, Math.min(width, bytes.length));
      if (value instanceof Decimal decimal) {
        BigInteger unscaled = unscaled(decimal);
        BigInteger low = unscaled.subtract(unscaled.mod(BigInteger.valueOf(width)));
        return Decimal.apply(new java.math.BigDecimal(low, decimal.scale()), decimal.precision(), decimal.scale());
      }
      if (value instanceof Long number) return number - Math.floorMod(number, (long) width);
      int number = ((Number) value).intValue();
      int low = number - Math.floorMod(number, width);
      if (value instanceof Byte) return (byte) low;
      return value instanceof Short ? (Object) (short) low : (Object) low;
    }
  }
}
