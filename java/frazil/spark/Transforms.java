package frazil.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
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

  static Transform of(Json given) {
    String name = given.of("transform").text();
    String column = given.of("column").text();
    if (name.equals("identity")) return Expressions.identity(column);
    if (name.equals("years")) return Expressions.years(column);
    if (name.equals("months")) return Expressions.months(column);
    if (name.equals("days")) return Expressions.days(column);
    if (name.equals("hours")) return Expressions.hours(column);
    int width = (int) given.of("width").number();
    if (name.equals("bucket")) return Expressions.bucket(width, new String[] {column});
    return Expressions.apply(
        name, new Expression[] {Expressions.literal(Integer.valueOf(width)), Expressions.column(column)});
  }

  static List described(Transform[] transforms) {
    List made = new ArrayList();
    for (int i = 0; i < transforms.length; i++) {
      Map node = new LinkedHashMap();
      made.add(node);
      node.put("transform", transforms[i].name());
      List arguments = new ArrayList();
    node.put("arguments", arguments);
      Expression[] given = transforms[i].arguments();
      for (int k = 0; k < given.length; k++) {
        if (given[k] instanceof Literal) {
          arguments.add(((Literal) given[k]).value().toString());
        } else if (given[k] instanceof NamedReference) {
          arguments.add(String.join(".", ((NamedReference) given[k]).fieldNames()));
        } else {
          arguments.add(given[k].describe());
        }
      }
    }
    return made;
  }
}
