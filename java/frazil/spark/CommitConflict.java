package frazil.spark;

import java.util.Map;
import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;

/**
 * Another commit changed what a statement relies on; the statement can be tried again. SQLSTATE 40001 says the same to
 * programs in other languages.
 */
public class CommitConflict extends SparkRuntimeException {
  private static final long serialVersionUID = 1L;
  private final String told;

  CommitConflict(String told) {
    super("INTERNAL_ERROR", Scala.map("message", told), null, new QueryContext[0], "");
    this.told = told;
  }

  @Override
  public String getMessage() {
    return told;
  }

  @Override
  public String getCondition() {
    return "FRAZIL_COMMIT_CONFLICT";
  }

  @Override
  public String getErrorClass() {
    return getCondition();
  }

  @Override
  public String getSqlState() {
    return "40001";
  }

  @Override
  public boolean isInternalError() {
    return false;
  }

  @Override
  public Map<String, String> getMessageParameters() {
    return Map.of("message", told);
  }
}
