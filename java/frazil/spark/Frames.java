package frazil.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** Frames over tables that no statement names. */
public class Frames {
  private Frames() {}

  /** The rows of a table. */
  public static Dataset of(SparkSession session, FrazilTable table) {
    DataSourceV2Relation relation = DataSourceV2Relation.create(table, Option.empty(), Option.empty());
    return Dataset$.MODULE$.ofRows(session, relation);
  }

  /** The filters over a scan as JSON; exact where nothing else decides which of its rows there are. */
  public static String filters(LogicalPlan plan) {
    List found = new ArrayList();
    LogicalPlan at = plan;
    while (at instanceof Project || at instanceof Filter) {
      if (at instanceof Filter) found.add(((Filter) at).condition());
      at = at instanceof Filter ? ((Filter) at).child() : ((Project) at).child();
    }
    Map made = Predicates.described(RowChanges.seq(found));
    if (!(at instanceof DataSourceV2ScanRelation)) made.put("exact", Boolean.FALSE);
    return Json.text(made);
  }

  /** The first columns of a frame as these attributes, the others as they are. */
  static Dataset bound(SparkSession session, Dataset rows, Seq attributes) {
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset) rows).queryExecution().analyzed();
    List wanted = RowChanges.list(attributes);
    List given = RowChanges.list(plan.output());
    List made = new ArrayList();
    for (int i = 0; i < given.size(); i++) {
      if (i < wanted.size()) {
        Attribute as = (Attribute) wanted.get(i);
        made.add(
            new Alias((Expression) given.get(i), as.name(), as.exprId(), as.qualifier(), Option.empty(),
                (Seq) (Object) Nil$.MODULE$));
      } else {
        made.add(given.get(i));
      }
    }
    return Dataset$.MODULE$.ofRows(session, new Project(RowChanges.seq(made), plan));
  }
}
