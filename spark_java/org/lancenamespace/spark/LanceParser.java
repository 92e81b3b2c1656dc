package org.lancenamespace.spark;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;

/**
 * {@code DESCRIBE HISTORY table [LIMIT n]} of a table in a catalog of this package is a query of its metadata table.
 *
 * <p>All other statements are those of the parser behind it, whose methods differ between versions of Spark.
 */
final class LanceParser implements InvocationHandler {
  private static final Pattern HISTORY = Pattern.compile(
      "\\s*DESC(?:RIBE)?\\s+HISTORY\\s+(.+?)(\\s+LIMIT\\s+\\d+)?[\\s;]*", Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

  private final SparkSession session;
  private final ParserInterface parser;

  private LanceParser(SparkSession session, ParserInterface parser) {
    this.session = session;
    this.parser = parser;
  }

  static ParserInterface of(SparkSession session, ParserInterface parser) {
    Class<?>[] methods = {ParserInterface.class};
    return (ParserInterface) Proxy.newProxyInstance(
        LanceParser.class.getClassLoader(), methods, new LanceParser(session, parser));
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getName().startsWith("parsePlan") && arguments[0] instanceof String statement) {
      arguments[0] = rewritten(statement);
    }
    try {
      return method.invoke(parser, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }

  private String rewritten(String statement) {
    Matcher found = HISTORY.matcher(statement);
    if (!found.matches()) {
      return statement;
    }
    LanceNames named;
    try {
      named = LanceNames.find(session, parser.parseMultipartIdentifier(found.group(1)));
    } catch (ParseException error) {
      return statement;
    }
    String limit = found.group(2) == null ? "" : found.group(2);
    return named == null ? statement
        : "SELECT * FROM " + named.quoted() + ".`history` ORDER BY version DESC" + limit;
  }
}
