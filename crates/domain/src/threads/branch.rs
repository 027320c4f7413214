//! Branches (threads that start at the head of another thread) and the statement of a join.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::chain::hash::{Digest, Tag};
use crate::json::canonical::canonical;
use crate::primitives::id::{BranchName, ThreadId};

/// The limit of branches per request. Each branch stores a full state.
pub const BRANCHES_MADE_MAX: usize = 8;

/// The limit of branches per head, and of branches per join.
pub const BRANCHES_MAX: u32 = 32;

/// The number of hex digits of the digest in a branch's thread id: 128 bits, enough to exclude collisions.
const NAMED_BY: usize = 32;

const NAME_BEGINS: &str = "branch-";

/// The origin of a branch: its name, and the head that it starts from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// The name of the branch among the branches of that head.
    pub name: BranchName,
    /// The thread that was forked.
    pub thread: ThreadId,
    /// The head of that thread at the time of the fork.
    pub transition: Digest,
    /// The version of that head.
    pub version: u64,
}

/// A joined branch with its own head.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinedBranch {
    /// The name of the branch.
    pub name: BranchName,
    /// The thread of the branch.
    pub thread: ThreadId,
    /// The head of the branch at the time of the join.
    pub transition: Digest,
}

/// The strategy that settles a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// A conflict is an error.
    Union,
    /// The branch that the request names last wins.
    LastWrite,
    /// The value that most branches have wins.
    Vote,
    /// The value with the highest total confidence wins.
    Confidence,
    /// The request chooses the value.
    Explicit,
}

/// The part of a statement that describes a join.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinStatement {
    /// The branches, by name.
    pub branches: Vec<JoinedBranch>,
    /// The strategy that settled conflicts.
    pub strategy: Strategy,
}

impl Branch {
    /// Returns the thread id of a branch. The id is derived from the forked head, so a client that knows the head finds
    /// the branch without a list.
    pub fn thread_of(thread: &ThreadId, transition: Digest, name: &BranchName) -> ThreadId {
        // The name is part of the digest, so the branches of one head have different ids.
        let digest = Digest::of(Tag::Branch, &[canonical(&json!([thread, transition, name])).as_bytes()]);
        let hex: String = digest.bytes().iter().map(|it| format!("{it:02x}")).collect();
        ThreadId::try_from(format!("{NAME_BEGINS}{}", &hex[..NAMED_BY]))
            .expect("letters, digits and a hyphen are a name")
    }

    /// Checks that an id has the form of a branch's id. Clients can predict these ids, so other threads must not have
    /// one.
    pub fn is_name(thread: &ThreadId) -> bool {
        let digits = thread.as_str().strip_prefix(NAME_BEGINS);
        digits.is_some_and(|it| it.len() == NAMED_BY && it.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')))
    }

    /// Returns the thread id of this branch.
    pub fn own_thread(&self) -> ThreadId {
        Self::thread_of(&self.thread, self.transition, &self.name)
    }
}

impl JoinStatement {
    /// Checks that the list of branches is not empty, within the limit, sorted without duplicates, and without the
    /// joining thread.
    pub fn is_whole(&self, own: &ThreadId) -> bool {
        let count = u32::try_from(self.branches.len()).unwrap_or(u32::MAX);
        (1..=BRANCHES_MAX).contains(&count)
            // A strict order excludes duplicates and gives equal joins equal bytes.
            && self.branches.is_sorted_by(|a, b| a.name < b.name)
            && self.branches.iter().all(|it| it.thread != *own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(of: &str) -> Digest {
        Digest::of(Tag::Transition, &[of.as_bytes()])
    }

    fn joined(names: &[&str]) -> JoinStatement {
        let branch = |name: &&str| JoinedBranch {
            name: BranchName::try_from(*name).unwrap(),
            thread: ThreadId::try_from(format!("branch-{name}")).unwrap(),
            transition: digest(name),
        };
        JoinStatement { branches: names.iter().map(branch).collect(), strategy: Strategy::Union }
    }

    #[test]
    fn a_branch_is_named_by_thread_head_and_name_together() {
        let name = |it: &str| BranchName::try_from(it).unwrap();
        let thread = |it: &str| ThreadId::try_from(it).unwrap();
        let one = Branch::thread_of(&thread("order-17"), digest("a"), &name("left"));
        assert!(one.as_str().starts_with("branch-") && one.as_str().len() == 39, "{one}");
        assert_eq!(one, Branch::thread_of(&thread("order-17"), digest("a"), &name("left")));
        for other in [
            Branch::thread_of(&thread("order-18"), digest("a"), &name("left")),
            Branch::thread_of(&thread("order-17"), digest("b"), &name("left")),
            Branch::thread_of(&thread("order-17"), digest("a"), &name("right")),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_join_names_each_branch_once_in_order_and_never_itself() {
        let own = ThreadId::try_from("order-17").unwrap();
        assert!(joined(&["a", "b"]).is_whole(&own));
        assert!(!joined(&[]).is_whole(&own), "nothing to join");
        assert!(!joined(&["b", "a"]).is_whole(&own), "not in order");
        assert!(!joined(&["a", "a"]).is_whole(&own), "one twice");
        assert!(!joined(&["a"]).is_whole(&joined(&["a"]).branches[0].thread), "itself");
        let many: Vec<String> = (0..=BRANCHES_MAX).map(|it| format!("b{it:03}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(!joined(&many).is_whole(&own), "too many");
        assert!(joined(&many[1..]).is_whole(&own));
    }
}
