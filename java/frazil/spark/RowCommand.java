package frazil.spark;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import scala.Enumeration;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** A change of rows as one command that hides its parts from Spark. */
public class RowCommand extends LogicalPlan implements Command {
  final RowChange change;

  public RowCommand(RowChange change) {
    this.change = change;
  }

  @Override
  public Seq<Attribute> output() {
    return Scala.none();
  }

  @Override
  public AttributeSet producedAttributes() {
    return Command.super.producedAttributes();
  }

  @Override
  public Statistics stats() {
    return Command.super.stats();
  }

  @Override
  public Seq<LogicalPlan> children() {
    return Scala.none();
  }

  @Override
  public LogicalPlan mapChildren(Function1<LogicalPlan, LogicalPlan> function) {
    return this;
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public Seq<Enumeration.Value> nodePatterns() {
    return Scala.seq(java.util.List.of(TreePattern.COMMAND()));
  }

  /** Spark's way to give a trait its field. */
  @Override
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      Seq<Enumeration.Value> patterns) {}

  @Override
  public String nodeName() {
    return "Frazil " + change;
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
    return other instanceof RowCommand;
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
