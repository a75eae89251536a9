package frazil.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * DELETE, UPDATE, MERGE and overwriting on tables of a Frazil catalog: planned as one command that Python carries out.
 */
public class RowChanges extends SparkStrategy {
  private final SparkSession session;

  public RowChanges(SparkSession session) {
    this.session = session;
  }

  public Seq apply(LogicalPlan plan) {
    LogicalPlan target = null;
    if (plan instanceof DeleteFromTable) target = ((DeleteFromTable) plan).table();
    if (plan instanceof UpdateTable) target = ((UpdateTable) plan).table();
    if (plan instanceof MergeIntoTable) target = ((MergeIntoTable) plan).targetTable();
    if (plan instanceof OverwritePartitionsDynamic) target = (LogicalPlan) ((OverwritePartitionsDynamic) plan).table();
    if (plan instanceof OverwriteByExpression) target = (LogicalPlan) ((OverwriteByExpression) plan).table();
    DataSourceV2Relation relation = target == null ? null : relation(target);
    if (relation == null) return (Seq) (Object) Nil$.MODULE$;
    return seq(Collections.singletonList(new RowChangeExec(new RowChange(session, plan, relation))));
  }

  private static DataSourceV2Relation relation(LogicalPlan target) {
    LogicalPlan plan = EliminateSubqueryAliases.apply(target);
    while (plan instanceof Project) plan = ((Project) plan).child();
    if (plan instanceof DataSourceV2ScanRelation) plan = ((DataSourceV2ScanRelation) plan).relation();
    boolean ours = plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table() instanceof FrazilTable;
    return ours ? (DataSourceV2Relation) plan : null;
  }

  static Seq seq(List items) {
    return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
  }

  static List list(Seq items) {
    return new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(items));
  }

  /** One statement, in the terms that Python asks for it. */
  public static class RowChange {
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
      if (plan instanceof OverwritePartitionsDynamic) return "overwrite partitions";
      if (plan instanceof OverwriteByExpression) return "overwrite";
      return plan instanceof UpdateTable ? "update" : "merge";
    }

    public String token() {
      return ((FrazilTable) relation.table()).token();
    }

    FrazilTable table() {
      return (FrazilTable) relation.table();
    }

    /** The rows of a frame under the identities that the statement's expressions refer to. */
    public Dataset bound(Dataset rows) {
      return Frames.bound(session, rows, relation.output());
    }

    public Column condition() {
      if (plan instanceof DeleteFromTable) return column(((DeleteFromTable) plan).condition());
      if (plan instanceof UpdateTable) {
        Option given = ((UpdateTable) plan).condition();
        return given.isEmpty() ? null : column((Expression) given.get());
      }
      if (plan instanceof OverwriteByExpression) return column(((OverwriteByExpression) plan).deleteExpr());
      return column(((MergeIntoTable) plan).mergeCondition());
    }

    /** The new rows of an overwrite. */
    public Dataset rows() {
      return Dataset$.MODULE$.ofRows(session, ((V2WriteCommand) plan).query());
    }

    private Map options() {
      scala.collection.immutable.Map given =
          plan instanceof OverwriteByExpression
              ? ((OverwriteByExpression) plan).writeOptions()
              : ((OverwritePartitionsDynamic) plan).writeOptions();
      return new HashMap(scala.jdk.javaapi.CollectionConverters.asJava((scala.collection.Map) given));
    }

    public Dataset source() {
      return Dataset$.MODULE$.ofRows(session, ((MergeIntoTable) plan).sourceTable());
    }

    /**
     * The statement as JSON: its verb, options, assignments, clauses, and the pairs of columns that the condition of a
     * merge makes equal. Conditions and values are numbers among the columns that are given.
     */
    public String described(List given) {
      Map made = new LinkedHashMap();
      made.put("verb", verb());
      if (plan instanceof UpdateTable) made.put("assignments", assigned(((UpdateTable) plan).assignments(), given));
      if (plan instanceof MergeIntoTable) {
        MergeIntoTable merge = (MergeIntoTable) plan;
        List pairs = new ArrayList();
        equal(pairs, merge.mergeCondition(), list(relation.output()), list(merge.sourceTable().output()));
        made.put("pairs", pairs);
        List clauses = new ArrayList();
        add(clauses, "matched", merge.matchedActions(), given);
        add(clauses, "not matched", merge.notMatchedActions(), given);
        add(clauses, "not matched by source", merge.notMatchedBySourceActions(), given);
        made.put("clauses", clauses);
      }
      if (plan instanceof V2WriteCommand) made.put("options", options());
      return Json.text(made);
    }

    private static void equal(List made, Expression condition, List target, List source) {
      if (condition instanceof And) {
        equal(made, ((And) condition).left(), target, source);
        equal(made, ((And) condition).right(), target, source);
      } else if (condition instanceof EqualTo) {
        Expression left = ((EqualTo) condition).left();
        Expression right = ((EqualTo) condition).right();
        if (isOf(left, target) && isOf(right, source)) made.add(pair(spelled(left, target), spelled(right, source)));
        if (isOf(right, target) && isOf(left, source)) made.add(pair(spelled(right, target), spelled(left, source)));
      }
    }

    private static boolean isOf(Expression expression, List attributes) {
      if (!(expression instanceof Attribute)) return false;
      int found = 0;
      boolean same = false;
      for (int i = 0; i < attributes.size(); i++) {
        Attribute each = (Attribute) attributes.get(i);
        if (each.name().equalsIgnoreCase(((Attribute) expression).name())) found++;
        same = same || each.exprId().equals(((Attribute) expression).exprId());
      }
      return same && found == 1;
    }

    private static List pair(String target, String source) {
      List made = new ArrayList();
      made.add(target);
      made.add(source);
      return made;
    }

    /** The name of a column as its relation has it; Spark keeps the spelling of the statement. */
    private static String spelled(Expression expression, List attributes) {
      Attribute column = (Attribute) expression;
      for (int i = 0; i < attributes.size(); i++) {
        Attribute each = (Attribute) attributes.get(i);
        if (each.exprId().equals(column.exprId())) return each.name();
      }
      return column.name();
    }

    /** Clauses of one side: side, action, condition or null, assignments or null. */
    private void add(List made, String side, Seq actions, List given) {
      List all = list(actions);
      for (int i = 0; i < all.size(); i++) {
        MergeAction action = (MergeAction) all.get(i);
        List clause = new ArrayList();
        clause.add(side);
        clause.add(action instanceof DeleteAction ? "delete" : action instanceof UpdateAction ? "update" : "insert");
        clause.add(action.condition().isEmpty() ? null : numbered((Expression) action.condition().get(), given));
        if (action instanceof UpdateAction) {
          clause.add(assigned(((UpdateAction) action).assignments(), given));
        } else if (action instanceof InsertAction) {
          clause.add(assigned(((InsertAction) action).assignments(), given));
        } else {
          clause.add(null);
        }
        made.add(clause);
      }
    }

    private static Integer numbered(Expression expression, List given) {
      given.add(ExpressionUtils.column(expression));
      return Integer.valueOf(given.size() - 1);
    }

    /** Assignments: the path of a column, and its value. */
    private List assigned(Seq assignments, List given) {
      List all = list(assignments);
      List made = new ArrayList();
      for (int i = 0; i < all.size(); i++) {
        Assignment assignment = (Assignment) all.get(i);
        List each = new ArrayList();
        each.add(path(assignment.key()));
        each.add(numbered(assignment.value(), given));
        made.add(each);
      }
      return made;
    }

    private List path(Expression key) {
      List made = new ArrayList();
      Expression at = key;
      while (at instanceof org.apache.spark.sql.catalyst.expressions.GetStructField) {
        org.apache.spark.sql.catalyst.expressions.GetStructField part =
            (org.apache.spark.sql.catalyst.expressions.GetStructField) at;
        made.add(0, part.childSchema().fields()[part.ordinal()].name());
        at = part.child();
      }
      made.add(0, spelled(at, list(relation.output())));
      return made;
    }

    private static Column column(Expression expression) {
      return ExpressionUtils.column(expression);
    }

    public String toString() {
      return verb() + " " + table().name();
    }
  }
}
