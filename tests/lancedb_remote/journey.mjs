// A journey of lancedb's client in Node.js through a server: `node journey.mjs URL DATABASE HOME`. HOME has node_modules.
// Prints one JSON object. `journey.py` is the same journey in Python.
import { createRequire } from "node:module";

const [url, database, home] = process.argv.slice(2);
const load = createRequire(`${home}/`);
const lancedb = load("@lancedb/lancedb");
const arrow = load("apache-arrow");
const { Index } = lancedb;

const ids = (found) => found.map((each) => Number(each.id));
const told = async (ask) => {
  try {
    await ask();
  } catch (error) {
    return error.message;
  }
  return "nothing";
};

const connection = await lancedb.connect(database, { apiKey: "any-key", hostOverride: url });
const seen = { empty: await connection.tableNames() };
const schema = new arrow.Schema([
  new arrow.Field("id", new arrow.Int64(), true),
  new arrow.Field("text", new arrow.Utf8(), true),
  new arrow.Field("vector", new arrow.FixedSizeList(2, new arrow.Field("item", new arrow.Float32(), true)), true),
]);
const row = (n) => ({ id: BigInt(n), text: n % 2 ? "puppy runs" : "lazy cat", vector: [n, 0] });
const rows = (...ids) => lancedb.makeArrowTable(ids.map(row), { schema });
const table = await connection.createTable("t", rows(0, 1, 2));

seen.created = await table.countRows();
seen.exists = (await told(() => connection.createTable("t", rows(1)))).includes("already exists");
seen.names = await connection.tableNames();
seen.added = (await table.add(rows(3, 4))).version;
seen.columns = (await (await connection.openTable("t")).schema()).fields.map((field) => field.name);
seen.updated = Number((await table.update({ where: "id > 2", values: { text: "fast dog" } })).rowsUpdated);
seen.deleted = Number((await table.delete("id = 4")).numDeletedRows);
const merged = await table
  .mergeInsert("id")
  .whenMatchedUpdateAll()
  .whenNotMatchedInsertAll()
  .execute(rows(3, 5));
seen.merged = [Number(merged.numInsertedRows), Number(merged.numUpdatedRows)];
seen.filtered = ids(await table.query().where("id > 2").select(["id"]).limit(10).toArray());
seen.ordered = ids(await table.query().orderBy({ columnName: "id", ascending: false, nullsFirst: false }).limit(2).toArray());
seen.nearest = ids(await table.vectorSearch([2.2, 0]).limit(3).toArray());
seen.bounded = ids(await table.vectorSearch([2.2, 0]).distanceRange(0.5, 3).limit(10).toArray());
seen.explained = (await table.vectorSearch([2.2, 0]).limit(3).explainPlan()).includes("KNN");
await table.createIndex("id", { config: Index.btree(), name: "ids" });
await table.createIndex("text", { config: Index.fts(), name: "words" });
await table.createIndex("vector", { config: Index.ivfFlat({ distanceType: "cosine", numPartitions: 1 }), name: "near" });
seen.indices = (await table.listIndices()).map((index) => `${index.name} ${index.columns}`).sort();
seen.metric = (await table.indexStats("near")).distanceType;
seen.words = ids(await table.search("puppy", "fts", "text").limit(10).toArray()).sort();
await table.dropIndex("ids");
seen.left = (await table.listIndices()).length;
await table.addColumns([{ name: "twice", valueSql: "id * 2" }]);
await table.alterColumns([{ path: "twice", rename: "double" }]);
seen.doubled = await table.countRows("double = id * 2");
await table.dropColumns(["double"]);
const tags = await table.tags();
await tags.create("first", 1);
seen.tag = await tags.getVersion("first");
await table.checkout("first");
seen.then = await table.countRows();
await table.checkoutLatest();
const branch = await (await table.branches()).create("dev");
await branch.delete("id = 0");
seen.branch = [await branch.countRows(), await table.countRows()];
await table.checkout(1);
await table.restore();
seen.restored = await table.countRows();
seen.taken = ids(await table.takeOffsets([2, 0]).toArray()).sort();
await connection.createNamespace(["inner"]);
await connection.createTable("u", rows(1), ["inner"]);
seen.inner = await connection.tableNames(["inner"]);
await connection.renameTable("t", "renamed");
seen.renamed = await connection.tableNames();
const renamed = await connection.openTable("renamed");
seen.column = (await told(() => renamed.countRows("nope > 1"))).includes("nope");
await connection.dropTable("renamed");
seen.missing = (await told(() => connection.openTable("renamed"))).includes("was not found");
console.log(JSON.stringify(seen));
