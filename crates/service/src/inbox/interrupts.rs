//! Lists open interrupts from host applications, page by page.

use countersign_domain::interrupts::Interrupt;
use countersign_store::records::OPEN;
use countersign_store::{Cursor, RowFilter};

use crate::error::Result;
use crate::inbox::Inbox;
use crate::inbox::list::InboxCursor;
use crate::interrupts::InterruptView;

/// A page of interrupts.
pub struct InterruptListing {
    /// The nearest deadline first.
    pub interrupts: Vec<InterruptView>,
    /// Start of the next page.
    pub next: Option<InboxCursor>,
}

impl Inbox {
    /// Returns up to `limit` open interrupts after a position in their list.
    pub async fn interrupts_open(&self, after: Option<&InboxCursor>, limit: u32) -> Result<InterruptListing> {
        let (keys, now) = (self.core.keys()?, self.core.now());
        // An interrupt past its deadline is not open any more, even if no worker has ended it yet.
        let begin = Cursor { due: now.millis(), id: char::MAX.to_string() };
        let after = after.map_or(&begin, |it| &it.0);
        // One more than the page holds shows that another page follows.
        let mut open = self
            .core
            .reader(&keys)
            .list::<Interrupt>(RowFilter::State(OPEN), Some(after), limit.saturating_add(1))
            .await?;
        let more = open.len() > limit as usize;
        open.truncate(limit as usize);
        let last = open.last().filter(|_| more).map(|it| &it.record);
        let next = last.map(|it| InboxCursor(Cursor { due: it.expires_at.millis(), id: it.id.to_string() }));
        let active = self.active_policies(&keys, open.iter().map(|it| &it.record.flow)).await?;
        let mut interrupts = Vec::with_capacity(open.len());
        for interrupt in open.into_iter().map(|it| it.record) {
            // An interrupt without its flow is a finding of an audit. Without a policy, the gateway cannot tell which
            // values are redacted.
            let Some(active) = active.get(&interrupt.flow) else { continue };
            let policies = self.threads.policies_under(&keys, *active, [interrupt.policy]).await?;
            interrupts.push(InterruptView { interrupt, policies });
        }
        Ok(InterruptListing { interrupts, next })
    }
}
