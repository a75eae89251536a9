package frazil.spark;

import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/** The physical form of a DELETE, UPDATE or MERGE. */
public class RowChangeExec extends V2CommandExec {
  private final RowChanges.RowChange change;

  public RowChangeExec(RowChanges.RowChange change) {
    this.change = change;
  }

  public Seq run() {
    change.table().bridge().ask("change rows", change);
    return (Seq) (Object) Nil$.MODULE$;
  }

  public Seq children() {
    return (Seq) (Object) Nil$.MODULE$;
  }

  public Seq output() {
    return (Seq) (Object) Nil$.MODULE$;
  }

  public String nodeName() {
    return "Frazil " + change;
  }

  public SparkPlan withNewChildrenInternal(IndexedSeq children) {
    return this;
  }

  public int productArity() {
    return 1;
  }

  public Object productElement(int at) {
    return change;
  }

  public boolean canEqual(Object other) {
    return other instanceof RowChangeExec;
  }

  public boolean equals(Object other) {
    return this == other;
  }

  public int hashCode() {
    return System.identityHashCode(this);
  }
}
