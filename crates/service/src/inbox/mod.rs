//! The inbox: lists pending reviews, ended reviews and search results, page by page.
//!
//! A page reads a bounded number of rows with a few queries, however many reviews there are. It reads the list with the
//! most selective label, checks the other conditions on the rows, and loads all related rows at once.

pub mod bulk_decisions;
mod filter;
mod interrupts;
pub mod list;

use std::sync::Arc;

use crate::platform::core::Core;
use crate::policy_changes::PolicyChanges;
use crate::reviews::Reviews;
use crate::threads::Threads;
pub use filter::{InboxFilter, InboxOwnerFilter, InboxSearch, InboxStateFilter};
pub use interrupts::InterruptListing;

/// Lists what waits for a reviewer.
pub struct Inbox {
    core: Arc<Core>,
    threads: Arc<Threads>,
    reviews: Arc<Reviews>,
    policy_changes: Arc<PolicyChanges>,
}

impl Inbox {
    pub(crate) fn new(
        core: &Arc<Core>,
        threads: &Arc<Threads>,
        reviews: &Arc<Reviews>,
        policy_changes: &Arc<PolicyChanges>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            threads: Arc::clone(threads),
            reviews: Arc::clone(reviews),
            policy_changes: Arc::clone(policy_changes),
        }
    }
}
