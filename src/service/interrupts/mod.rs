//! Interrupts from host applications: receives the request, counts the votes, and answers the host application.

mod duplicates;
pub mod lifecycle;
pub mod signed_posts;
mod view;

use std::sync::Arc;

use crate::service::identity::Identity;
use crate::service::platform::core::Core;
use crate::service::policies::Policies;
use crate::service::reviews::Reviews;
use crate::service::reviews::rejudge_cache::RejudgeCache;
use crate::service::threads::Threads;
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
    pub(in crate::service) fn new(
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
