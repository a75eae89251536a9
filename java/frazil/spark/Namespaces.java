package frazil.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;

/** Namespaces of a Frazil catalog. */
abstract class Namespaces implements SupportsNamespaces {
  abstract Bridge bridge();

  static Map named(String[] namespace) {
    Map made = new LinkedHashMap();
    made.put("namespace", namespace);
    return made;
  }

  public String[][] listNamespaces() {
    return list(named(new String[0]));
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) throw new NoSuchNamespaceException(namespace);
    return list(named(namespace));
  }

  private String[][] list(Map request) {
    Json found = bridge().ask("list namespaces", request).of("namespaces");
    String[][] made = new String[found.size()][];
    for (int i = 0; i < made.length; i++) made[i] = found.at(i).texts();
    return made;
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    Json found;
    try {
      found = bridge().ask("load namespace", named(namespace)).of("properties");
    } catch (Bridge.Refused error) {
      if (error.kind.equals("NotFound")) throw new NoSuchNamespaceException(namespace);
      throw error;
    }
    return new HashMap(found.map());
  }

  public boolean namespaceExists(String[] namespace) {
    try {
      loadNamespaceMetadata(namespace);
      return true;
    } catch (NoSuchNamespaceException error) {
      return false;
    }
  }

  public void createNamespace(String[] namespace, Map properties) throws NamespaceAlreadyExistsException {
    Map request = named(namespace);
    request.put("properties", properties);
    try {
      bridge().ask("create namespace", request);
    } catch (Bridge.Refused error) {
      if (error.kind.equals("AlreadyExists")) throw new NamespaceAlreadyExistsException(namespace);
      throw error;
    }
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
    Map request = named(namespace);
    Map set = new LinkedHashMap();
    request.put("set", set);
    List remove = new ArrayList();
    request.put("remove", remove);
    for (int i = 0; i < changes.length; i++) {
      if (changes[i] instanceof NamespaceChange.SetProperty) {
        NamespaceChange.SetProperty change = (NamespaceChange.SetProperty) changes[i];
        set.put(change.property(), change.value());
      } else {
        remove.add(((NamespaceChange.RemoveProperty) changes[i]).property());
      }
    }
    bridge().ask("alter namespace", request);
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    Map request = named(namespace);
    request.put("cascade", cascade);
    return bridge().ask("drop namespace", request).of("dropped").flag();
  }
}
