//! Names of new threads: the host's own, or one that nobody guesses.
//!
//! Names are unique in the whole gateway. Those that begin with `flow:` and a flow's name are private to the hosts of
//! that flow, so that no other host can take one or find out which of them are taken.

use crate::domain::episode::imported;
use crate::domain::primitives::id::{FlowId, ThreadId};
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::branch::Branch;
use crate::random;
use crate::service::error::{Error, Result};

/// What private names begin with. The flow's name follows, and a name without a colon.
const PRIVATE: &str = "flow:";

/// Returns the name of a new thread of a flow. It looks nothing up: a refusal tells nothing of other threads.
pub(super) fn name_for(flow: &FlowId, asked: Option<&ThreadId>, now: Timestamp) -> Result<ThreadId> {
    let refused = |why: &str| Err(Error::invalid("/thread", why));
    match asked {
        Some(id) if imported::is_name(id) => refused("only a run that is imported has such a name"),
        Some(id) if Branch::is_name(id) => {
            refused("only a branch has such a name; fork one with POST /v1/threads/{thread}/forks")
        }
        Some(id) if !may_take(flow, id) => refused(
            "a name that begins with `flow:` belongs to one flow: use `flow:FLOW:NAME` with the thread's own flow and a NAME without colons",
        ),
        Some(id) => Ok(id.clone()),
        None => Ok(ThreadId::try_from(random::uuid_v7(now).to_string()).expect("a UUID is a name")),
    }
}

/// Whether a thread of that flow may have the name.
fn may_take(flow: &FlowId, name: &ThreadId) -> bool {
    let Some(private) = name.as_str().strip_prefix(PRIVATE) else { return true };
    // The flow's name may have colons. The last one ends it, or one name would be of two flows.
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
