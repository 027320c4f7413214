// Says whether the public library takes a webhook, as a receiver would ask it.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, text] = process.argv.slice(2);
const { Webhook } = createRequire(pathToFileURL(`${modules}/`))("standardwebhooks");
const ask = JSON.parse(text);
try {
  new Webhook(ask.secret).verify(ask.body, ask.headers);
  console.log("good");
} catch (error) {
  console.log("bad:", error.message);
}
