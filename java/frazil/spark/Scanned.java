package frazil.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** Which states of tables a query reads. */
class Scanned {
  private Scanned() {}

  /** The states that the rows of a frame come from. */
  static List<Map<String, Object>> by(Dataset<?> rows) {
    List<Map<String, Object>> states = new ArrayList<>();
    add(states, ((org.apache.spark.sql.classic.Dataset<?>) rows).queryExecution().analyzed());
    return states;
  }

  static void add(List<Map<String, Object>> states, LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation scan) add(states, (LogicalPlan) scan.relation());
    if (plan instanceof DataSourceV2Relation relation) {
      String token = null;
      if (relation.table() instanceof FrazilTable table) token = table.token();
      if (relation.table() instanceof SourceTable table) token = table.token();
      if (token != null) {
        boolean named = relation.table() instanceof FrazilTable;
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("token", token);
        state.put("options", named ? relation.options().asCaseSensitiveMap() : Map.of());
        states.add(state);
      }
    }
    for (Expression expression : Scala.list(plan.expressions())) add(states, expression);
    for (LogicalPlan child : Scala.list(plan.children())) add(states, child);
  }

  static void add(List<Map<String, Object>> states, Expression expression) {
    if (expression instanceof PlanExpression<?> subquery) {
      QueryPlan<?> plan = subquery.plan();
      if (plan instanceof LogicalPlan logical) add(states, logical);
    }
    for (Expression child : Scala.list(expression.children())) add(states, child);
  }
}
