//! Names of new threads: chosen by the host application, or random.
//!
//! Names are unique in the whole gateway. Names that begin with `flow:` and the name of a flow are private to
//! the hosts of that flow. Other hosts cannot use them or find out which of them exist.

use countersign_adapters::random;
use countersign_domain::episode::imported;
use countersign_domain::primitives::id::{FlowId, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::approval_request;
use countersign_domain::threads::branch::Branch;

use crate::error::{Error, Result};

/// The prefix of private names. The name of the flow and a name without colons follow.
const PRIVATE: &str = "flow:";

/// Returns the name of a new thread of a flow. It reads no rows, so that an error reveals nothing about other
/// threads.
pub(super) fn name_for(flow: &FlowId, asked: Option<&ThreadId>, now: Timestamp) -> Result<ThreadId> {
    let refused = |why: &str| Err(Error::invalid("/thread", why));
    match asked {
        // Otherwise a thread could pass for an imported run.
        Some(id) if imported::is_name(id) => {
            refused("this form of name is reserved for imported runs. Choose another name")
        }
        // Anyone who knows the head can compute a branch's name, so no host may take it.
        Some(id) if Branch::is_name(id) => {
            refused("this form of name is reserved for branches. Fork one with POST /v1/threads/{thread}/forks")
        }
        Some(id) if approval_request::is_name(id) => {
            refused("this form of name is reserved for approval requests. Choose another name")
        }
        Some(id) if !may_take(flow, id) => refused(
            "a name that begins with `flow:` is private to one flow. Use `flow:FLOW:NAME` with the thread's own flow and a NAME without colons",
        ),
        Some(id) => Ok(id.clone()),
        // A generated name is random, so hosts of other flows cannot guess it.
        None => Ok(ThreadId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name")),
    }
}

/// Returns whether a thread of that flow may have the name.
fn may_take(flow: &FlowId, name: &ThreadId) -> bool {
    let Some(private) = name.as_str().strip_prefix(PRIVATE) else { return true };
    // Flow names may contain colons. The last colon ends the flow name, otherwise one name could belong to
    // two flows.
    private.rsplit_once(':').is_some_and(|(owner, own)| owner == flow.as_str() && !own.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(flow: &str, name: &str) -> bool {
        may_take(&flow.try_into().unwrap(), &name.try_into().unwrap())
    }

    #[test]
    fn private_name_is_taken_by_its_flow_only() {
        assert!(takes("payments", "flow:payments:order-17"));
        for other in ["refunds", "payment", "payments:order", "flow"] {
            assert!(!takes(other, "flow:payments:order-17"), "{other}");
        }
        for unfinished in ["flow:", "flow:payments", "flow:payments:", "flow::order-17"] {
            assert!(!takes("payments", unfinished), "{unfinished}");
        }
        for shared in ["order-17", "flow", "flows:payments:1", "payments:order-17"] {
            assert!(takes("payments", shared) && takes("refunds", shared), "{shared}");
        }
    }

    #[test]
    fn private_name_belongs_to_one_flow() {
        let name = "flow:a:b:c";
        assert!(takes("a:b", name) && !takes("a", name));
    }
}
