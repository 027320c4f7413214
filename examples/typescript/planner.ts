// The planner: asks for what people have to decide, tells them where, and waits.
import { decision, propose, say, told } from "./countersign.ts";

const [thread, parent, user] = told("THREAD", "PARENT", "USER");
const asked = await propose(thread, "planner", parent, { requested_action: "refund", target_user_id: Number(user) });
if (asked.outcome !== "held") throw new Error("nobody was asked");
say({ outcome: asked.outcome, transition: asked.transition, review: asked.review.url });
const { approved, decision: ended, receipt } = await decision(asked.transition);
say({ approved, decision: ended, transition: asked.transition, receipt });
