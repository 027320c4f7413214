// The host: begins a piece of work, named after its own job, with what is true at its beginning.
import { call, say, told } from "./countersign.ts";

const [thread, message] = told("THREAD", "MESSAGE");
const state = { raw_text: message, requested_action: "none", target_user_id: 17, payment: { amount: 40, currency: "EUR" } };
const context = { title: "A refund", on_behalf_of: "Eva Example" };
const { answer } = await call("POST", "/v1/threads", { flow: "payments", thread, state, context });
say({ thread: answer["thread"], transition: answer["transition"] });
