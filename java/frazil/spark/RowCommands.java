package frazil.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.ResolveRowLevelCommandAssignments$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Changes of rows become leaves once Spark has resolved them: its cache and its optimizer, which know such commands
 * for other tables, leave them alone, and Python carries them out.
 */
public class RowCommands extends Rule<LogicalPlan> {
  private final SparkSession session;

  public RowCommands(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    LogicalPlan target = target(plan);
    DataSourceV2Relation relation = target == null ? null : relation(target);
    if (relation == null) return plan;
    boolean assigns = plan instanceof UpdateTable || plan instanceof MergeIntoTable;
    LogicalPlan bare = assigns ? plan.transformExpressions(new Uncast()) : plan;
    if (!bare.resolved()) return plan;
    if (relation.table() instanceof SourceTable) {
      if (plan instanceof V2WriteCommand) return plan;
      throw new Bridge.Refused(
          "Unsupported",
          "the data source reads and adds rows; DELETE, UPDATE and MERGE take the name of a table in a Frazil catalog");
    }
    RowChange change = new RowChange(session, assigns ? aligned(bare, relation) : plan, relation);
    change.checkConditions();
    return new RowCommand(change);
  }

  static LogicalPlan target(LogicalPlan plan) {
    if (plan instanceof DeleteFromTable delete) return delete.table();
    if (plan instanceof UpdateTable update) return update.table();
    if (plan instanceof MergeIntoTable merge) return merge.targetTable();
    boolean adds =
        plan instanceof AppendData
            || plan instanceof OverwriteByExpression
            || plan instanceof OverwritePartitionsDynamic;
    return adds ? (LogicalPlan) ((V2WriteCommand) plan).table() : null;
  }

  /** The table that a statement changes, if it is ours: by its name, or through a view of all its columns. */
  private static DataSourceV2Relation relation(LogicalPlan target) {
    LogicalPlan plan = target;
    while (true) {
      if (plan instanceof SubqueryAlias alias) {
        plan = alias.child();
      } else if (plan instanceof View view) {
        plan = view.child();
      } else if (plan instanceof Project project && keepsColumns(project)) {
        plan = project.child();
      } else {
        break;
      }
    }
    if (!(plan instanceof DataSourceV2Relation relation)) return null;
    Table table = relation.table();
    return table instanceof FrazilTable || table instanceof SourceTable ? relation : null;
  }

  private static boolean keepsColumns(Project project) {
    return Scala.list(project.projectList()).stream().allMatch(Attribute.class::isInstance);
  }

  // Assignments

  /**
   * The statement with one value for each column, nested fields by name. Spark does this for tables whose commands it
   * rewrites itself; for others it casts values to the column's type, by position. So those casts have gone, and a
   * table that seems to be such a one takes the place of ours.
   */
  private static LogicalPlan aligned(LogicalPlan plan, DataSourceV2Relation relation) {
    Object[] parts = Scala.list(relation.productIterator().toSeq()).toArray();
    for (int i = 0; i < parts.length; i++) {
      if (parts[i] instanceof FrazilTable table) parts[i] = table.rewritable();
    }
    LogicalPlan standing = relation.makeCopy(parts);
    List<LogicalPlan> children = new ArrayList<>(Scala.list(plan.children()));
    children.set(0, children.get(0).transform(new Replaced(relation, standing)));
    return ResolveRowLevelCommandAssignments$.MODULE$.apply(plan.withNewChildren(Scala.seq(children)));
  }

  /** Puts one relation in the place of another. */
  static class Replaced extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    private final LogicalPlan old;
    private final LogicalPlan replacement;

    Replaced(LogicalPlan old, LogicalPlan replacement) {
      this.old = old;
      this.replacement = replacement;
    }

    @Override
    public boolean isDefinedAt(LogicalPlan node) {
      return node == old;
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends LogicalPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
      return isDefinedAt(node) ? (B) replacement : otherwise.apply(node);
    }
  }

  /** Assignments without the casts that Spark puts around their values. */
  private static class Uncast extends AbstractPartialFunction<Expression, Expression> {
    @Override
    public boolean isDefinedAt(Expression node) {
      return node instanceof Assignment assignment
          && assignment.value() instanceof Cast cast
          && cast.getTagValue(Cast.BY_TABLE_INSERTION()).isDefined();
    }

    @Override
    @SuppressWarnings("unchecked")
    public <A extends Expression, B> B applyOrElse(A node, Function1<A, B> otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      Assignment assignment = (Assignment) (Expression) node;
      Expression value = ((Cast) assignment.value()).child();
      if (value instanceof AssertNotNull checked) value = checked.child();
      return (B) new Assignment(assignment.key(), value);
    }
  }
}
