/** A process with a guarded function, which the tests kill. */

import { Client, guard } from "countersign-gateway";

const { requests } = new Client({ url: process.env["GATE"] ?? "", token: process.env["INSTANCE"] ?? "" });
const refund = guard(
  async ({ amount }: { amount: number }) => {
    console.log(`running ${amount}`);
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  },
  { requests, tool: "refund", onPending: (request) => console.log(`pending ${request.reviewUrl}`) },
);
refund({ amount: 51 }, { key: "killed" }).catch((error: unknown) => console.log(`Error: ${String(error)}`));
