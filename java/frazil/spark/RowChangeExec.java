package frazil.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** The physical form of a change of rows. */
public class RowChangeExec extends V2CommandExec {
  private final RowChange change;

  public RowChangeExec(RowChange change) {
    this.change = change;
  }

  @Override
  public Seq<InternalRow> run() {
    change.table().bridge().ask("change rows", change);
    change.recache();
    return Scala.none();
  }

  @Override
  public Seq<SparkPlan> children() {
    return Scala.none();
  }

  @Override
  public Seq<Attribute> output() {
    return Scala.none();
  }

  @Override
  public String nodeName() {
    return "Frazil " + change;
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return this;
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int at) {
    return change;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof RowChangeExec;
  }

  @Override
  public boolean equals(Object other) {
    return this == other;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(this);
  }
}
