package frazil.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Objects;

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

  static Json of(Object value) {
    return new Json(value);
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
    return new Json(list().get(index));
  }

  int size() {
    return list().size();
  }

  private List<?> list() {
    return (List<?>) value;
  }

  /** The parts of a list. */
  List<Json> items() {
    return list().stream().map(Json::of).toList();
  }

  @SuppressWarnings("unchecked")
  <T> Map<String, T> map() {
    return (Map<String, T>) value;
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
    return items().stream().map(item -> item.text()).toArray(String[]::new);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Json json && Objects.equals(value, json.value);
  }

  @Override
  public int hashCode() {
    return Objects.hashCode(value);
  }
}
