package frazil.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.V2ExpressionBuilder;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import scala.Option;

/** Filters of a query as JSON; what has no public form is left out, which costs files, never rows. */
class Predicates {
  private Predicates() {}

  /** The filters that have a public form, and whether all have. */
  static Map<String, Object> described(List<? extends org.apache.spark.sql.catalyst.expressions.Expression> filters) {
    List<Map<String, Object>> described = new ArrayList<>();
    for (org.apache.spark.sql.catalyst.expressions.Expression filter : filters) {
      Option<Predicate> predicate = built(filter);
      if (predicate.isDefined()) described.add(described(predicate.get()));
    }
    Map<String, Object> node = new LinkedHashMap<>();
    node.put("filters", described);
    node.put("exact", described.size() == filters.size());
    return node;
  }

  /** Spark's builder asserts that a predicate stands below NOT and OR, and a function of a catalog is none. */
  private static Option<Predicate> built(org.apache.spark.sql.catalyst.expressions.Expression filter) {
    try {
      return new V2ExpressionBuilder(filter, true).buildPredicate();
    } catch (AssertionError unknown) {
      return Option.empty();
    }
  }

  static List<Map<String, Object>> described(Expression[] expressions) {
    return Arrays.stream(expressions).map(Predicates::described).toList();
  }

  private static Map<String, Object> described(Expression expression) {
    Map<String, Object> node = new LinkedHashMap<>();
    if (expression instanceof NamedReference column) {
      node.put("column", column.fieldNames());
    } else if (expression instanceof Literal<?> literal) {
      node.put("type", literal.dataType().sql());
      node.put("value", value(literal.value()));
    } else if (expression instanceof GeneralScalarExpression call) {
      node.put("op", call.name());
      node.put("children", described(call.children()));
    } else if (expression instanceof UserDefinedScalarFunc call
        && call.canonicalName().equals("frazil." + Windows.NAME)) {
      node.put("op", Windows.NAME);
      node.put("children", described(call.children()));
    } else if (expression.getClass().getSimpleName().equals("VariantGet")) {
      // Public since Spark 4.3: the class is not there to compile against in 4.1.
      node.put("op", "variant_get");
      node.put("path", asked(expression, "path"));
      node.put("type", ((DataType) asked(expression, "targetType")).sql());
      node.put("children", described(expression.children()));
    } else {
      node.put("op", "?");
    }
    return node;
  }

  private static Object asked(Expression expression, String method) {
    try {
      return expression.getClass().getMethod(method).invoke(expression);
    } catch (ReflectiveOperationException other) {
      throw new IllegalStateException(other);
    }
  }

  private static Object value(Object value) {
    if (value == null || value instanceof byte[] || value instanceof Boolean) return value;
    if (value instanceof Decimal decimal) return decimal.toJavaBigDecimal().toPlainString();
    return value.toString();
  }
}
