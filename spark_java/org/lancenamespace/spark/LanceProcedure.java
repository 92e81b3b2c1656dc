package org.lancenamespace.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** A procedure of {@code system}, which Python describes and runs. */
record LanceProcedure(Calls calls, JsonNode description0) implements UnboundProcedure, BoundProcedure {
  @Override
  public String name() {
    return description0.get("name").asText();
  }

  @Override
  public String description() {
    return description0.get("description").asText();
  }

  @Override
  public BoundProcedure bind(StructType input) {
    return this;
  }

  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public ProcedureParameter[] parameters() {
    List<ProcedureParameter> parameters = new ArrayList<>();
    for (JsonNode parameter : description0.get("parameters")) {
      ProcedureParameter.Builder builder = ProcedureParameter.in(parameter.get("name").asText(), type(parameter));
      builder.comment(parameter.get("comment").asText());
      if (parameter.hasNonNull("default")) {
        builder.defaultValue(parameter.get("default").asText());
      }
      parameters.add(builder.build());
    }
    return parameters.toArray(new ProcedureParameter[0]);
  }

  private static DataType type(JsonNode parameter) {
    return switch (parameter.get("type").asText()) {
      case "long" -> DataTypes.LongType;
      case "boolean" -> DataTypes.BooleanType;
      default -> DataTypes.StringType;
    };
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    ObjectNode arguments = calls.arguments().put("procedure", name());
    arguments.put("catalog", calls.catalog());
    SparkSession session = (SparkSession) org.apache.spark.sql.SparkSession.active();
    arguments.set("namespace", Calls.strings(LanceNames.currentNamespace(session, calls.catalog())));
    ObjectNode values = arguments.putObject("values");
    int place = 0;
    for (JsonNode parameter : description0.get("parameters")) {
      String parameterName = parameter.get("name").asText();
      if (input.isNullAt(place)) {
        values.putNull(parameterName);
      } else if (type(parameter).equals(DataTypes.LongType)) {
        values.put(parameterName, input.getLong(place));
      } else if (type(parameter).equals(DataTypes.BooleanType)) {
        values.put(parameterName, input.getBoolean(place));
      } else {
        values.put(parameterName, input.getUTF8String(place).toString());
      }
      place++;
    }
    JsonNode result = calls.call("call_procedure", arguments);
    calls.refresh(result.get("changed"));
    StructType schema = Calls.schema(result.get("schema"));
    return List.<Scan>of(new RowsScan("result of " + name(), schema, result.get("rows"))).iterator();
  }
}
