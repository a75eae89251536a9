package frazil.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;

/** Namespaces of a Frazil catalog. */
abstract class Namespaces implements SupportsNamespaces {
  abstract Bridge bridge();

  static Map<String, Object> named(String[] namespace) {
    Map<String, Object> request = new LinkedHashMap<>();
    request.put("namespace", namespace);
    return request;
  }

  public String[][] listNamespaces() {
    return list(named(new String[0]));
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
    return list(named(namespace));
  }

  private String[][] list(Map<String, Object> request) {
    List<Json> namespaces = bridge().ask("list namespaces", request).of("namespaces").items();
    return namespaces.stream().map(Json::texts).toArray(String[][]::new);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    try {
      return bridge().ask("load namespace", named(namespace)).of("properties").map();
    } catch (Bridge.Refused error) {
      if (error.kind.equals("NotFound")) throw new NoSuchNamespaceException(namespace);
      throw error;
    }
  }

  public boolean namespaceExists(String[] namespace) {
    try {
      loadNamespaceMetadata(namespace);
      return true;
    } catch (NoSuchNamespaceException error) {
      return false;
    }
  }

  public void createNamespace(String[] namespace, Map<String, String> properties)
      throws NamespaceAlreadyExistsException {
    Map<String, Object> request = named(namespace);
    request.put("properties", properties);
    try {
      bridge().ask("create namespace", request);
    } catch (Bridge.Refused error) {
      if (error.kind.equals("AlreadyExists")) throw new NamespaceAlreadyExistsException(namespace);
      throw error;
    }
  }

  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    Map<String, String> set = new LinkedHashMap<>();
    List<String> remove = new ArrayList<>();
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty setting) set.put(setting.property(), setting.value());
      if (change instanceof NamespaceChange.RemoveProperty removal) remove.add(removal.property());
    }
    Map<String, Object> request = named(namespace);
    request.put("set", set);
    request.put("remove", remove);
    bridge().ask("alter namespace", request);
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    Map<String, Object> request = named(namespace);
    request.put("cascade", cascade);
    return bridge().ask("drop namespace", request).of("dropped").flag();
  }
}
