package frazil.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Seq;

/** Plans changes of rows on tables of a Frazil catalog: each is one command that Python carries out. */
public class RowChanges extends SparkStrategy {
  @Override
  public Seq<SparkPlan> apply(LogicalPlan plan) {
    return plan instanceof RowCommand command ? Scala.seq(List.of(new RowChangeExec(command.change))) : Scala.none();
  }
}
