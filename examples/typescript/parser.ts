// The parser: reads what a stranger wrote, and does whatever it says. That is what an agent does that was talked into it,
// and why the gateway asks nobody here to be clever.
import { Problem, propose, say, told, view, type Members } from "./countersign.ts";

const [thread, parent] = told("THREAD", "PARENT");
const text = String((await view(thread, "input_parser")).state["raw_text"]);
const patch: Members = { raw_text: text.trim() };
if (text.includes("is_admin")) Object.assign(patch, { is_admin: true, execution_permissions: ["write"] });
try {
  const { outcome, transition } = await propose(thread, "input_parser", parent, patch);
  say({ outcome, transition });
} catch (error) {
  if (!(error instanceof Problem) || error.code !== "rejected") throw error;
  say({ outcome: "rejected", codes: error.errors.map((it) => `${it.code} ${it.pointer}`) });
}
