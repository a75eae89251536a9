package frazil.spark;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;

/** Partition transforms between Spark's form and JSON. */
class Transforms {
  private Transforms() {}

  static Transform of(Json field) {
    String name = field.of("transform").text();
    Json columns = field.of("columns");
    String column = columns.at(0).text();
    return switch (name) {
      case "identity" -> Expressions.identity(column);
      case "years" -> Expressions.years(column);
      case "months" -> Expressions.months(column);
      case "days" -> Expressions.days(column);
      case "hours" -> Expressions.hours(column);
      case "bucket" -> Expressions.bucket(width(field), texts(columns));
      default -> Expressions.apply(name, Expressions.literal(width(field)), Expressions.column(column));
    };
  }

  private static String[] texts(Json columns) {
    String[] texts = new String[columns.size()];
    for (int i = 0; i < texts.length; i++) texts[i] = columns.at(i).text();
    return texts;
  }

  private static int width(Json field) {
    return (int) field.of("width").number();
  }

  static List<Map<String, Object>> described(Transform[] transforms) {
    return Arrays.stream(transforms).map(Transforms::described).toList();
  }

  private static Map<String, Object> described(Transform transform) {
    List<String> arguments = Arrays.stream(transform.arguments()).map(Transforms::argument).toList();
    return Map.of("transform", transform.name(), "arguments", arguments);
  }

  private static String argument(Expression expression) {
    if (expression instanceof Literal<?> literal) return literal.value().toString();
    if (expression instanceof NamedReference column) return String.join(".", column.fieldNames());
    return expression.describe();
  }
}
