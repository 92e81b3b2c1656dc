package org.lancenamespace.spark;

import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Filters of Spark as SQL of Lance, where both give the same answer for every row.
 *
 * <p>Spark orders NaN above all numbers and takes 0.0 and -0.0 for equal. Lance orders them by their bits, so the sign
 * of a NaN counts. A comparison of such a column with a number is written so that the difference does not show. Other
 * filters on floating point numbers are left to Spark. Times, decimals and fields of structs are compared where the
 * table stores them with the types that Spark has.
 */
final class FilterSql {
  private static final int LAST_YEAR = 9999;
  private static final int MOST_COMPARISONS = 100;
  private static final long MICROSECONDS = 1_000_000;
  private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSS", Locale.ROOT);

  private final StructType schema;
  private final Set<String> exact;

  private FilterSql(LanceTable table) {
    this.schema = table.storedType();
    this.exact = table.exactColumns();
  }

  /** The filter, if all of it can be expressed. */
  static Optional<String> one(LanceTable table, Predicate predicate) {
    try {
      return Optional.of(new FilterSql(table).sql(predicate));
    } catch (NotExpressible error) {
      return Optional.empty();
    }
  }

  /** The conjunction of filters, if all of them can be expressed. */
  static Optional<String> all(LanceTable table, Predicate[] predicates) {
    List<String> parts = new ArrayList<>();
    for (Predicate predicate : predicates) {
      Optional<String> part = one(table, predicate);
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
        if (isFloating(parts[0]) && parts[1] instanceof Literal<?> number) {
          return floating(parts[0], predicate.name(), number);
        }
        if (isFloating(parts[1]) && parts[0] instanceof Literal<?> number) {
          return floating(parts[1], predicate.name().replace('<', ' ').replace('>', '<').replace(' ', '>'), number);
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
    if (parts.length < 2) {
      throw new NotExpressible();
    }
    List<String> values = new ArrayList<>();
    if (isFloating(parts[0])) {
      if (parts.length > MOST_COMPARISONS) {
        throw new NotExpressible();
      }
      for (int place = 1; place < parts.length; place++) {
        values.add(floating(parts[0], "=", literalOf(parts[place])));
      }
      return "(" + String.join(" OR ", values) + ")";
    }
    for (int place = 1; place < parts.length; place++) {
      values.add(operand(parts[place]));
    }
    return "(" + operand(parts[0]) + " IN (" + String.join(", ", values) + "))";
  }

  private static Literal<?> literalOf(Expression expression) {
    if (expression instanceof Literal<?> literal) {
      return literal;
    }
    throw new NotExpressible();
  }

  private boolean isFloating(Expression expression) {
    return expression instanceof NamedReference reference
        && (field(reference).dataType() instanceof DoubleType || field(reference).dataType() instanceof FloatType);
  }

  private String floating(Expression column, String operator, Literal<?> literal) {
    NamedReference reference = (NamedReference) column;
    boolean isDouble = field(reference).dataType() instanceof DoubleType;
    boolean isComparable = isDouble ? literal.value() instanceof Double : literal.value() instanceof Float;
    if (!isComparable || !Double.isFinite(((Number) literal.value()).doubleValue())
        || !isDouble && !isStoredAsShown(reference)) {
      throw new NotExpressible();
    }
    double number = ((Number) literal.value()).doubleValue();
    String name = anyColumn(column);
    String isNan = "isnan(" + name + ")";
    boolean isZero = number == 0;
    double least = isDouble ? Double.MIN_VALUE : Float.MIN_VALUE;
    String above = Double.toString(isZero ? least : number);
    String below = Double.toString(isZero ? -least : number);
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
    if (expression instanceof NamedReference reference) {
      field(reference);
      if (reference.fieldNames().length == 1 || isStoredAsShown(reference)) {
        return quoted(reference);
      }
    }
    throw new NotExpressible();
  }

  private String column(NamedReference reference, Class<? extends DataType> wanted) {
    DataType type = field(reference).dataType();
    boolean isPlain = isExact(type) && reference.fieldNames().length == 1;
    boolean isComparable = isExact(type) || isTimeOrDecimal(type);
    if (!wanted.isInstance(type) || !isComparable || !isPlain && !isStoredAsShown(reference)) {
      throw new NotExpressible();
    }
    return quoted(reference);
  }

  /** Whether the table has no other type for the values than Spark shows, such as times of another unit. */
  private boolean isStoredAsShown(NamedReference reference) {
    return exact.contains(reference.fieldNames()[0]);
  }

  private StructField field(NamedReference reference) {
    StructField found = null;
    DataType parent = schema;
    for (String name : reference.fieldNames()) {
      if (!(parent instanceof StructType struct) || struct.getFieldIndex(name).isEmpty()) {
        throw new NotExpressible();
      }
      found = struct.apply(name);
      parent = found.dataType();
    }
    if (found == null) {
      throw new NotExpressible();
    }
    return found;
  }

  private static String quoted(NamedReference reference) {
    List<String> names = new ArrayList<>();
    for (String name : reference.fieldNames()) {
      if (name.isEmpty() || name.indexOf('`') >= 0 || name.indexOf('.') >= 0) {
        throw new NotExpressible();
      }
      names.add("`" + name + "`");
    }
    return String.join(".", names);
  }

  private static boolean isExact(DataType type) {
    return type instanceof ByteType || type instanceof ShortType || type instanceof IntegerType
        || type instanceof LongType || type instanceof BooleanType || type instanceof DateType
        || (type instanceof StringType text && text.equals(org.apache.spark.sql.types.DataTypes.StringType));
  }

  private static boolean isTimeOrDecimal(DataType type) {
    return type instanceof TimestampType || type instanceof TimestampNTZType || type instanceof DecimalType;
  }

  private static String literal(Literal<?> literal) {
    Object value = literal.value();
    DataType type = literal.dataType();
    if (value == null || !isExact(type) && !isTimeOrDecimal(type)) {
      throw new NotExpressible();
    }
    if (type instanceof StringType) {
      return "'" + value.toString().replace("'", "''") + "'";
    }
    if (type instanceof DateType) {
      LocalDate day = LocalDate.ofEpochDay(((Number) value).longValue());
      requireYear(day.getYear());
      return "CAST('" + day + "' AS DATE)";
    }
    if (type instanceof DecimalType decimal) {
      return "CAST('" + ((Decimal) value).toPlainString() + "' AS DECIMAL(" + decimal.precision() + ", "
          + decimal.scale() + "))";
    }
    if (isTimeOrDecimal(type)) {
      long microseconds = ((Number) value).longValue();
      Instant time = Instant.ofEpochSecond(Math.floorDiv(microseconds, MICROSECONDS),
          Math.floorMod(microseconds, MICROSECONDS) * (1_000_000_000 / MICROSECONDS));
      LocalDateTime shown = LocalDateTime.ofInstant(time, ZoneOffset.UTC);
      requireYear(shown.getYear());
      return "CAST('" + TIME.format(shown) + "' AS TIMESTAMP(6))";
    }
    return value.toString();
  }

  private static void requireYear(int year) {
    if (year < 1 || year > LAST_YEAR) {
      throw new NotExpressible();
    }
  }

  /** The expression is left to Spark. */
  private static final class NotExpressible extends RuntimeException {
    NotExpressible() {
      super(null, null, false, false);
    }
  }
}
