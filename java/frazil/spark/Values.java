package frazil.spark;

import java.math.BigDecimal;
import java.util.Base64;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/** Values that Python tells, as Spark holds them. */
class Values {
  private Values() {}

  static Object of(Json told, DataType type) {
    if (told.isNull()) return null;
    if (type instanceof StringType) return UTF8String.fromString(told.text());
    if (type instanceof BinaryType) return Base64.getDecoder().decode(told.text());
    if (type instanceof DecimalType decimal) {
      return Decimal.apply(new BigDecimal(told.text()), decimal.precision(), decimal.scale());
    }
    if (told.value() instanceof Boolean) return told.value();
    if (type instanceof IntegerType || type instanceof DateType) return (int) told.number();
    return told.number();
  }
}
