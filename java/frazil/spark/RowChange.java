package frazil.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** One statement that changes rows, in the terms that Python asks for it. */
public class RowChange {
  private final SparkSession session;
  private final LogicalPlan plan;
  private final DataSourceV2Relation relation;

  RowChange(SparkSession session, LogicalPlan plan, DataSourceV2Relation relation) {
    this.session = session;
    this.plan = plan;
    this.relation = relation;
  }

  private String verb() {
    if (plan instanceof DeleteFromTable) return "delete";
    if (plan instanceof UpdateTable) return "update";
    if (plan instanceof MergeIntoTable) return "merge";
    if (plan instanceof OverwritePartitionsDynamic) return "overwrite partitions";
    return plan instanceof OverwriteByExpression ? "overwrite" : "append";
  }

  public String token() {
    return table().token();
  }

  FrazilTable table() {
    return (FrazilTable) relation.table();
  }

  /** The rows of a frame under the identities that the statement's expressions refer to. */
  public Dataset<Row> bound(Dataset<Row> rows) {
    return Frames.bound(session, rows, relation.output());
  }

  public Column condition() {
    if (plan instanceof DeleteFromTable delete) return column(delete.condition());
    if (plan instanceof OverwriteByExpression overwrite) {
      return Literal.TrueLiteral().equals(overwrite.deleteExpr()) ? null : column(overwrite.deleteExpr());
    }
    if (plan instanceof MergeIntoTable merge) return column(merge.mergeCondition());
    Option<Expression> condition = ((UpdateTable) plan).condition();
    return condition.isEmpty() ? null : column(condition.get());
  }

  /** Rows are chosen more than once, before and after they are written, so chance may not choose them. */
  void checkConditions() {
    List<Expression> conditions = new ArrayList<>();
    if (plan instanceof DeleteFromTable delete) conditions.add(delete.condition());
    if (plan instanceof OverwriteByExpression overwrite) conditions.add(overwrite.deleteExpr());
    if (plan instanceof UpdateTable update) conditions.addAll(CollectionConverters.asJava(update.condition().toList()));
    if (plan instanceof MergeIntoTable merge) {
      conditions.add(merge.mergeCondition());
      List<MergeAction> actions = new ArrayList<>(Scala.list(merge.matchedActions()));
      actions.addAll(Scala.list(merge.notMatchedActions()));
      actions.addAll(Scala.list(merge.notMatchedBySourceActions()));
      for (MergeAction action : actions) {
        conditions.addAll(CollectionConverters.asJava(action.condition().toList()));
      }
    }
    for (Expression condition : conditions) {
      if (condition.deterministic()) continue;
      throw new Bridge.Refused(
          "InvalidInput",
          verb() + ": the condition " + condition.sql() + " is not deterministic; store its values first");
    }
  }

  /** The new rows of an insert or overwrite. */
  public Dataset<Row> rows() {
    return Dataset$.MODULE$.ofRows(session, ((V2WriteCommand) plan).query());
  }

  public Dataset<Row> source() {
    return Dataset$.MODULE$.ofRows(session, ((MergeIntoTable) plan).sourceTable());
  }

  /** What the statement says beside its rows, and what was set on the name of its table. */
  private Map<String, String> options() {
    Map<String, String> options = new LinkedHashMap<>(relation.options().asCaseSensitiveMap());
    if (plan instanceof AppendData append) options.putAll(CollectionConverters.asJava(append.writeOptions()));
    if (plan instanceof OverwriteByExpression overwrite) {
      options.putAll(CollectionConverters.asJava(overwrite.writeOptions()));
    }
    if (plan instanceof OverwritePartitionsDynamic overwrite) {
      options.putAll(CollectionConverters.asJava(overwrite.writeOptions()));
    }
    return options;
  }

  /**
   * The statement as JSON: its verb, options, what it reads, assignments, clauses, and the pairs of columns that the
   * condition of a merge makes equal. Conditions and values are numbers among the columns that are given.
   */
  public String described(List<Column> given) {
    Map<String, Object> described = new LinkedHashMap<>();
    described.put("verb", verb());
    described.put("options", options());
    described.put("scanned", scanned());
    described.put("metadata columns", metadataColumns());
    if (plan instanceof UpdateTable update) {
      described.put("assignments", assigned(Scala.list(update.assignments()), given));
    }
    if (plan instanceof MergeIntoTable merge) {
      List<List<String>> pairs = new ArrayList<>();
      List<Attribute> target = new ArrayList<>(Scala.list(relation.output()));
      equal(pairs, merge.mergeCondition(), target, Scala.list(merge.sourceTable().output()));
      described.put("pairs", pairs);
      List<List<Object>> clauses = new ArrayList<>();
      add(clauses, "matched", Scala.list(merge.matchedActions()), given);
      add(clauses, "not matched", Scala.list(merge.notMatchedActions()), given);
      add(clauses, "not matched by source", Scala.list(merge.notMatchedBySourceActions()), given);
      described.put("clauses", clauses);
    }
    return Json.text(described);
  }

  /** The states of tables that the statement reads, without the rows that it changes. */
  private List<Map<String, Object>> scanned() {
    List<Map<String, Object>> states = new ArrayList<>();
    if (plan instanceof V2WriteCommand write) Scanned.add(states, write.query());
    if (plan instanceof MergeIntoTable merge) Scanned.add(states, merge.sourceTable());
    for (Expression expression : Scala.list(plan.expressions())) Scanned.add(states, expression);
    return states;
  }

  /** Columns that the statement refers to and that are not in the table's schema. */
  private List<String> metadataColumns() {
    List<String> names = new ArrayList<>();
    List<AttributeReference> columns = Scala.list(relation.output());
    for (AttributeReference column : columns.subList(table().schema().size(), columns.size())) names.add(column.name());
    return names;
  }

  private static void equal(
      List<List<String>> pairs, Expression condition, List<Attribute> target, List<Attribute> source) {
    if (condition instanceof And both) {
      equal(pairs, both.left(), target, source);
      equal(pairs, both.right(), target, source);
    } else if (condition instanceof EqualTo equality) {
      Expression left = equality.left();
      Expression right = equality.right();
      if (isOf(left, target) && isOf(right, source)) pairs.add(List.of(spelled(left, target), spelled(right, source)));
      if (isOf(right, target) && isOf(left, source)) pairs.add(List.of(spelled(right, target), spelled(left, source)));
    }
  }

  private static boolean isOf(Expression expression, List<Attribute> attributes) {
    if (!(expression instanceof Attribute column)) return false;
    int namesakes = 0;
    boolean same = false;
    for (Attribute attribute : attributes) {
      if (attribute.name().equalsIgnoreCase(column.name())) namesakes++;
      same = same || attribute.exprId().equals(column.exprId());
    }
    return same && namesakes == 1;
  }

  /** The name of a column as its relation has it; Spark keeps the spelling of the statement. */
  private static String spelled(Expression expression, List<? extends Attribute> attributes) {
    Attribute column = (Attribute) expression;
    for (Attribute attribute : attributes) {
      if (attribute.exprId().equals(column.exprId())) return attribute.name();
    }
    return column.name();
  }

  /** Clauses of one side: side, action, condition or null, assignments or null. */
  private void add(List<List<Object>> clauses, String side, List<MergeAction> actions, List<Column> given) {
    for (MergeAction action : actions) {
      List<Object> clause = new ArrayList<>();
      clause.add(side);
      clause.add(action instanceof DeleteAction ? "delete" : action instanceof UpdateAction ? "update" : "insert");
      clause.add(action.condition().isEmpty() ? null : numbered(action.condition().get(), given));
      List<List<Object>> values = null;
      if (action instanceof UpdateAction update) values = assigned(Scala.list(update.assignments()), given);
      if (action instanceof InsertAction insert) values = assigned(Scala.list(insert.assignments()), given);
      clause.add(values);
      clauses.add(clause);
    }
  }

  private static int numbered(Expression expression, List<Column> given) {
    given.add(column(expression));
    return given.size() - 1;
  }

  /** Assignments: the path of a column, and its value; what stays as it is, is left out. */
  private List<List<Object>> assigned(List<Assignment> assignments, List<Column> given) {
    List<List<Object>> values = new ArrayList<>();
    for (Assignment assignment : assignments) {
      if (assignment.value().semanticEquals(assignment.key())) continue;
      values.add(List.of(path(assignment.key()), numbered(assignment.value(), given)));
    }
    return values;
  }

  private List<String> path(Expression key) {
    List<String> names = new ArrayList<>();
    Expression at = key;
    while (at instanceof GetStructField part) {
      names.add(0, part.childSchema().fields()[part.ordinal()].name());
      at = part.child();
    }
    names.add(0, spelled(at, Scala.list(relation.output())));
    return names;
  }

  private static Column column(Expression expression) {
    return ExpressionUtils.column(expression);
  }

  /** Lets Spark's cache hold the new rows; other sessions' caches are theirs. */
  void recache() {
    if (relation.catalog().isDefined() && relation.identifier().isDefined()) {
      Caches.refresh(session, relation.catalog().get().name(), relation.identifier().get());
    }
  }

  @Override
  public String toString() {
    return verb() + " " + table().name();
  }
}
