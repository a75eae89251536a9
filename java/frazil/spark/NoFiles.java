package frazil.spark;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.PartitionSpec;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.collection.mutable.LinkedHashMap;

/** An index without files or partitions: Spark's Parquet scan asks for one, the tasks are our own. */
class NoFiles extends PartitioningAwareFileIndex {
  NoFiles(SparkSession session) {
    super(session, Map$.MODULE$.empty(), Option.empty(), NoopCache$.MODULE$);
  }

  @Override
  public PartitionSpec partitionSpec() {
    return new PartitionSpec(new StructType(), Scala.none());
  }

  @Override
  public LinkedHashMap<Path, FileStatus> leafFiles() {
    return new LinkedHashMap<>();
  }

  @Override
  public Map<Path, FileStatus[]> leafDirToChildrenFiles() {
    return Map$.MODULE$.empty();
  }

  @Override
  public Seq<Path> rootPaths() {
    return Scala.none();
  }

  @Override
  public void refresh() {}
}
