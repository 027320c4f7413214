//! The commented policy that `init` writes.

use super::NODE;
use super::answers::{SetupAnswers, SetupSubject};

/// Returns the policy of a new flow.
pub(super) fn starter_policy(wanted: &SetupAnswers) -> String {
    let flow = &wanted.flow;
    let subject = match &wanted.subject {
        SetupSubject::Tools { allow, ask, .. } => of_tools(allow, ask),
        SetupSubject::Keys(keys) => of_keys(keys),
    };
    format!(
        "# The policy of the flow {flow}. After a change:\n\
         #   countersign policy check {flow}.toml\n\
         #   countersign policy activate {flow}.toml\n\
         # All keys: docs/reference/policy.md\n\
         flow = {}\n\n{subject}\n\
         # A member of one of these groups approves. `need` is the number of different people.\n\
         [[approval.stages]]\n\
         groups = [{}]\n\
         need = 1\n\n\
         [approval]\n\
         # How long a request waits for an approval, and how long an approval can be used.\n\
         ttl = \"24h\"\n\
         receipt_ttl = \"10m\"\n",
        quoted(flow.as_str()),
        quoted(wanted.group.as_str())
    )
}

fn of_tools(allow: &[String], ask: &[String]) -> String {
    format!(
        "# The agent. `writer = true` lets it use an approval, once.\n\
         [nodes.{NODE}]\n\
         writer = true\n\n\
         # The tools that the agent may call. Every other tool is refused.\n\
         [tools]\n\
         allow = {}\n\n\
         # These calls wait for an approval. All other allowed calls run at once, and are recorded.\n\
         [[rules]]\n\
         name = \"calls that need approval\"\n\
         tools = {}\n\
         when = \"true\"\n\
         then = \"hold\"\n\
         reason = \"calls of this tool need approval\"\n",
        list(allow),
        list(ask)
    )
}

fn of_keys(keys: &[String]) -> String {
    format!(
        "# A change of these keys waits for an approval.\n\
         protected = {0}\n\n\
         # The agent. It sees and changes these keys, and no others. Add the keys that it may change without approval.\n\
         [nodes.{NODE}]\n\
         reads = {0}\n\
         writes = {0}\n",
        list(keys)
    )
}

fn list(items: &[String]) -> String {
    format!("[{}]", items.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", "))
}

/// Returns a text as a TOML string. A JSON string has the same form.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
