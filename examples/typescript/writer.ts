// The writer: asks, writes what it was shown, and says so. The only node with a key to the bank.
//
// The target is somebody else's service and has no guard. It takes an Idempotency-Key, and the transition's digest is one:
// this approval moves money once, however often the writer dies and begins again. The digest comes from the writer's own
// job. A claim of the receipt would not do: nothing here checks its signature, and it may name another write.
import { abort, confirm, given, Problem, say, told, verify, type Members } from "./countersign.ts";

const [thread, transition, receipt, writeId] = told("THREAD", "TRANSITION", "RECEIPT", "WRITE_ID");

/** A clear no of the bank's. Anything else that goes wrong leaves open whether money was moved. */
class Refused extends Error {}

async function transfer(order: Members): Promise<string> {
  const response = await fetch(`${given("BANK_URL")}/transfers`, {
    method: "POST",
    headers: { authorization: `Bearer ${given("BANK_KEY")}`, "idempotency-key": transition },
    body: JSON.stringify(order),
  });
  if (response.status >= 400 && response.status < 500) throw new Refused(`the bank says ${response.status}`);
  if (!response.ok) throw new Error(`the bank says ${response.status}`);
  return ((await response.json()) as { transfer: string }).transfer;
}

/** What the bank has under this key. Unlike sending it again, asking moves nothing. */
async function transferred(): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${given("BANK_KEY")}` };
  const response = await fetch(`${given("BANK_URL")}/transfers/${transition}`, { headers });
  if (response.status === 404) return undefined;
  if (!response.ok) throw new Error(`the bank says ${response.status}`);
  return ((await response.json()) as { transfer: string }).transfer;
}

let done = await transferred();
if (!done) {
  const { view, lease_expires_at } = await verify({ thread, transition, receipt, write_id: writeId });
  const payment = view["payment"] as Members;
  if (Date.parse(lease_expires_at) <= Date.now()) throw new Error("the lease is over");
  try {
    done = await transfer({ user: view["target_user_id"] ?? null, amount: payment["amount"] ?? null });
  } catch (error) {
    // Where it is not clear, nobody is told anything: begun again, the same key finds out.
    if (error instanceof Refused) await abort(writeId, error.message);
    throw error;
  }
}
try {
  say({ outcome: (await confirm(writeId, { result_ref: done })).outcome, transfer: done });
} catch (error) {
  if (error instanceof Problem) console.error(`${done} was moved, and could not be confirmed: run this again`);
  throw error;
}
