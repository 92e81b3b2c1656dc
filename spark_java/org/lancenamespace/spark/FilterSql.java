package org.lancenamespace.spark;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Filters of Spark as SQL of Lance, where both give the same answer for every row.
 *
 * <p>Spark orders NaN above all numbers and takes 0.0 and -0.0 for equal. Lance orders them by their bits, so the sign
 * of a NaN counts. A comparison of a double with a number is written so that the difference does not show. Other
 * filters on floating point numbers are left to Spark, as those on decimals, timestamps and nested columns are.
 */
final class FilterSql {
  private static final int LAST_YEAR = 9999;

  private final StructType schema;

  private FilterSql(StructType schema) {
    this.schema = schema;
  }

  /** The filter, if all of it can be expressed. */
  static Optional<String> one(StructType schema, Predicate predicate) {
    try {
      return Optional.of(new FilterSql(schema).sql(predicate));
    } catch (NotExpressible error) {
      return Optional.empty();
    }
  }

  /** The conjunction of filters, if all of them can be expressed. */
  static Optional<String> all(StructType schema, Predicate[] predicates) {
    List<String> parts = new ArrayList<>();
    for (Predicate predicate : predicates) {
      Optional<String> part = one(schema, predicate);
      if (part.isEmpty()) {
        return Optional.empty();
      }
      parts.add(part.get());
    }
    return Optional.of(parts.isEmpty() ? "true" : String.join(" AND ", parts));
  }

  private String sql(Expression expression) {
    if (expression instanceof Literal<?> literal && literal.dataType() instanceof BooleanType) {
      return literal(literal);
    }
    if (expression instanceof NamedReference reference) {
      return "(" + column(reference, BooleanType.class) + ")";
    }
    if (!(expression instanceof Predicate predicate)) {
      throw new NotExpressible();
    }
    Expression[] parts = predicate.children();
    switch (predicate.name()) {
      case "AND":
      case "OR":
        return "(" + sql(parts[0]) + " " + predicate.name() + " " + sql(parts[1]) + ")";
      case "NOT":
        return "(NOT " + sql(parts[0]) + ")";
      case "=":
      case "<":
      case "<=":
      case ">":
      case ">=":
        if (isDouble(parts[0]) && parts[1] instanceof Literal<?> number) {
          return doubles(parts[0], predicate.name(), number);
        }
        if (isDouble(parts[1]) && parts[0] instanceof Literal<?> number) {
          return doubles(parts[1], predicate.name().replace('<', ' ').replace('>', '<').replace(' ', '>'), number);
        }
        return "(" + operand(parts[0]) + " " + predicate.name() + " " + operand(parts[1]) + ")";
      case "<>":
        return "(" + operand(parts[0]) + " <> " + operand(parts[1]) + ")";
      case "IS_NULL":
        return "(" + anyColumn(parts[0]) + " IS NULL)";
      case "IS_NOT_NULL":
        return "(" + anyColumn(parts[0]) + " IS NOT NULL)";
      case "IN":
        return in(parts);
      case "STARTS_WITH":
        return "starts_with(" + text(parts[0]) + ", " + text(parts[1]) + ")";
      case "ENDS_WITH":
        return "ends_with(" + text(parts[0]) + ", " + text(parts[1]) + ")";
      case "CONTAINS":
        return "contains(" + text(parts[0]) + ", " + text(parts[1]) + ")";
      case "ALWAYS_TRUE":
        return "true";
      case "ALWAYS_FALSE":
        return "false";
      default:
        throw new NotExpressible();
    }
  }

  private String in(Expression[] parts) {
    List<String> values = new ArrayList<>();
    for (int place = 1; place < parts.length; place++) {
      values.add(operand(parts[place]));
    }
    if (values.isEmpty()) {
      throw new NotExpressible();
    }
    return "(" + operand(parts[0]) + " IN (" + String.join(", ", values) + "))";
  }

  private boolean isDouble(Expression expression) {
    return expression instanceof NamedReference reference && reference.fieldNames().length == 1
        && field(reference).dataType() instanceof DoubleType;
  }

  private String doubles(Expression column, String operator, Literal<?> literal) {
    if (!(literal.value() instanceof Double number) || !Double.isFinite(number)) {
      throw new NotExpressible();
    }
    String name = anyColumn(column);
    String isNan = "isnan(" + name + ")";
    String above = number == 0 ? Double.toString(Double.MIN_VALUE) : number.toString();
    String below = number == 0 ? Double.toString(-Double.MIN_VALUE) : number.toString();
    boolean isZero = number == 0;
    return switch (operator) {
      case ">" -> "(" + name + (isZero ? " >= " : " > ") + above + " OR " + isNan + ")";
      case ">=" -> "(" + name + (isZero ? " > " : " >= ") + below + " OR " + isNan + ")";
      case "<" -> "(" + name + (isZero ? " <= " : " < ") + below + " AND NOT " + isNan + ")";
      case "<=" -> "(" + name + (isZero ? " < " : " <= ") + above + " AND NOT " + isNan + ")";
      default -> isZero ? "(" + name + " > " + below + " AND " + name + " < " + above + ")"
          : "(" + name + " = " + number + ")";
    };
  }

  private String operand(Expression expression) {
    if (expression instanceof NamedReference reference) {
      return column(reference, DataType.class);
    }
    if (expression instanceof Literal<?> literal) {
      return literal(literal);
    }
    throw new NotExpressible();
  }

  private String text(Expression expression) {
    if (expression instanceof NamedReference reference) {
      return column(reference, StringType.class);
    }
    return operand(expression);
  }

  private String anyColumn(Expression expression) {
    if (expression instanceof NamedReference reference && reference.fieldNames().length == 1) {
      return quoted(field(reference).name());
    }
    throw new NotExpressible();
  }

  private String column(NamedReference reference, Class<? extends DataType> wanted) {
    if (reference.fieldNames().length != 1) {
      throw new NotExpressible();
    }
    StructField field = field(reference);
    if (!wanted.isInstance(field.dataType()) || !isExact(field.dataType())) {
      throw new NotExpressible();
    }
    return quoted(field.name());
  }

  private StructField field(NamedReference reference) {
    String name = reference.fieldNames()[0];
    for (StructField field : schema.fields()) {
      if (field.name().equals(name)) {
        return field;
      }
    }
    throw new NotExpressible();
  }

  private static String quoted(String name) {
    if (name.indexOf('`') >= 0) {
      throw new NotExpressible();
    }
    return "`" + name + "`";
  }

  private static boolean isExact(DataType type) {
    return type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
        || type instanceof LongType || type instanceof BooleanType || type instanceof DateType
        || (type instanceof StringType text && text.equals(org.apache.spark.sql.types.DataTypes.StringType));
  }

  private static String literal(Literal<?> literal) {
    Object value = literal.value();
    if (value == null || !isExact(literal.dataType())) {
      throw new NotExpressible();
    }
    if (literal.dataType() instanceof StringType) {
      return "'" + value.toString().replace("'", "''") + "'";
    }
    if (literal.dataType() instanceof DateType) {
      LocalDate day = LocalDate.ofEpochDay(((Number) value).longValue());
      if (day.getYear() < 1 || day.getYear() > LAST_YEAR) {
        throw new NotExpressible();
      }
      return "CAST('" + day + "' AS DATE)";
    }
    return value.toString();
  }

  /** The expression is left to Spark. */
  private static final class NotExpressible extends RuntimeException {
    NotExpressible() {
      super(null, null, false, false);
    }
  }
}
