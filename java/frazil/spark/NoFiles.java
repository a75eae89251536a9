package frazil.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.collection.mutable.LinkedHashMap;

/** An index without files or partitions: Spark's Parquet scan asks for one, the tasks are our own. */
class NoFiles extends PartitioningAwareFileIndex {
  NoFiles(SparkSession session) {
    super(session, (Map) Map$.MODULE$.empty(), Option.empty(), NoopCache$.MODULE$);
  }

  public PartitionSpec partitionSpec() {
    return new PartitionSpec(new StructType(), (Seq) (Object) Nil$.MODULE$);
  }

  public LinkedHashMap leafFiles() {
    return new LinkedHashMap();
  }

  public Map leafDirToChildrenFiles() {
    return (Map) Map$.MODULE$.empty();
  }

  public Seq rootPaths() {
    return (Seq) (Object) Nil$.MODULE$;
  }

  public void refresh() {}
}
