package frazil.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What Python answered: a value with the parts of a JSON document. */
class Json {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private final Object value;

  private Json(Object value) {
    this.value = value;
  }

  static Json parsed(String text) {
    try {
      return new Json(MAPPER.readValue(text, Object.class));
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }

  static String text(Object value) {
    try {
      return MAPPER.writeValueAsString(value);
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }

  boolean has(String key) {
    return map().containsKey(key);
  }

  Json of(String key) {
    return new Json(map().get(key));
  }

  Json at(int index) {
    return new Json(((List) value).get(index));
  }

  int size() {
    return ((List) value).size();
  }

  Map map() {
    return (Map) value;
  }

  Object value() {
    return value;
  }

  boolean isNull() {
    return value == null;
  }

  String text() {
    return (String) value;
  }

  long number() {
    return ((Number) value).longValue();
  }

  boolean flag() {
    return ((Boolean) value).booleanValue();
  }

  String[] texts() {
    String[] made = new String[size()];
    for (int i = 0; i < made.length; i++) made[i] = at(i).text();
    return made;
  }

  public boolean equals(Object other) {
    return other instanceof Json && (value == null ? ((Json) other).value == null : value.equals(((Json) other).value));
  }

  public int hashCode() {
    return value == null ? 0 : value.hashCode();
  }
}
