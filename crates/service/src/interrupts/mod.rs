//! Interrupts from host applications: receives the request, counts the votes, and answers the host application.

mod duplicates;
pub mod lifecycle;
pub mod signed_posts;
mod view;

use std::sync::Arc;

use crate::identity::Identity;
use crate::platform::core::Core;
use crate::policies::Policies;
use crate::reviews::Reviews;
use crate::reviews::rejudge_cache::RejudgeCache;
use crate::threads::Threads;
pub use view::InterruptView;
pub(super) use view::{end_data, end_event, posted_data, received_data, vote_data};

/// Questions of host applications, and the votes on them.
pub struct Interrupts {
    core: Arc<Core>,
    policies: Arc<Policies>,
    identity: Arc<Identity>,
    threads: Arc<Threads>,
    reviews: Arc<Reviews>,
    interrupts_looked: RejudgeCache,
}

impl Interrupts {
    pub(crate) fn new(
        core: &Arc<Core>,
        policies: &Arc<Policies>,
        identity: &Arc<Identity>,
        threads: &Arc<Threads>,
        reviews: &Arc<Reviews>,
    ) -> Self {
        Self {
            core: Arc::clone(core),
            policies: Arc::clone(policies),
            identity: Arc::clone(identity),
            threads: Arc::clone(threads),
            reviews: Arc::clone(reviews),
            interrupts_looked: RejudgeCache::default(),
        }
    }
}
