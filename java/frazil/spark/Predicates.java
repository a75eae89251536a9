package frazil.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.V2ExpressionBuilder;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.Decimal;
import scala.Option;
import scala.collection.immutable.Seq;

/** Filters of a query as JSON; what has no public form is left out, which costs files, never rows. */
class Predicates {
  private Predicates() {}

  /** The filters that have a public form, and whether all have. */
  static Map described(Seq filters) {
    List made = new ArrayList();
    boolean exact = true;
    scala.collection.Iterator each = filters.iterator();
    while (each.hasNext()) {
      Option found =
          new V2ExpressionBuilder((org.apache.spark.sql.catalyst.expressions.Expression) each.next(), true)
              .buildPredicate();
      if (found.isDefined()) {
        made.add(described((Expression) found.get()));
      } else {
        exact = false;
      }
    }
    Map node = new LinkedHashMap();
    node.put("filters", made);
    node.put("exact", exact);
    return node;
  }

  static List described(Predicate[] predicates) {
    List made = new ArrayList();
    for (int i = 0; i < predicates.length; i++) {
      made.add(described((Expression) predicates[i]));
    }
    return made;
  }

  static Map described(Expression expression) {
    Map node = new LinkedHashMap();
    if (expression instanceof NamedReference) {
      List path = new ArrayList();
      node.put("column", path);
      String[] names = ((NamedReference) expression).fieldNames();
      for (int i = 0; i < names.length; i++) {
        path.add(names[i]);
      }
    } else if (expression instanceof Literal) {
      Literal literal = (Literal) expression;
      node.put("type", literal.dataType().sql());
      Object value = literal.value();
      if (value == null) {
        node.put("value", null);
      } else if (value instanceof byte[]) {
        node.put("value", (byte[]) value);
      } else if (value instanceof Boolean) {
        node.put("value", ((Boolean) value).booleanValue());
      } else if (value instanceof Decimal) {
        node.put("value", ((Decimal) value).toJavaBigDecimal().toPlainString());
      } else {
        node.put("value", value.toString());
      }
    } else if (expression instanceof GeneralScalarExpression) {
      GeneralScalarExpression call = (GeneralScalarExpression) expression;
      node.put("op", call.name());
      List children = new ArrayList();
      node.put("children", children);
      Expression[] parts = call.children();
      for (int i = 0; i < parts.length; i++) {
        children.add(described(parts[i]));
      }
    } else {
      node.put("op", "?");
    }
    return node;
  }
}
