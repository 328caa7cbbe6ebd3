// Holds the streams that stand beside it to the checks of @ag-ui/client itself.
const fs = require("fs");
const path = require("path");
const { verifyEvents } = require("@ag-ui/client");
const { EventSchema } = require("@ag-ui/core/schemas");
const { from, lastValueFrom, toArray } = require("rxjs");

const check = (events) => lastValueFrom(from(events.map((e) => EventSchema.parse(e))).pipe(verifyEvents(), toArray()));

(async () => {
  const dir = process.argv[2];
  for (const name of fs.readdirSync(dir).filter((n) => n.endsWith(".jsonl"))) {
    const events = fs.readFileSync(path.join(dir, name), "utf8").trim().split("\n").map((l) => JSON.parse(l));
    const seen = await check(events);
    if (seen.length !== events.length) throw new Error(`${name}: ${seen.length} of ${events.length} events`);
    const refused = await check(events.slice(1)).then(() => false, () => true);
    if (!refused) throw new Error(`${name}: a stream without its beginning passes`);
    console.log("ok", name, seen.length);
  }
})().catch((e) => { console.error(e.message); process.exit(1); });
