//! What hosts ask people about, a page at a time.

use super::{InboxCursor, Service};
use crate::domain::interrupts::Interrupt;
use crate::service::error::Result;
use crate::service::interrupts::InterruptView;
use crate::store::records::OPEN;
use crate::store::{Cursor, RowFilter};

/// A page of what hosts ask.
pub struct InterruptListing {
    /// The nearest deadline first.
    pub interrupts: Vec<InterruptView>,
    /// Where the page after this one begins.
    pub next: Option<InboxCursor>,
}

impl Service {
    /// The interrupts that people are asked about, at most so many, after a place in their list.
    pub async fn interrupts_open(&self, after: Option<&InboxCursor>, limit: u32) -> Result<InterruptListing> {
        let (keys, now) = (self.keys()?, self.now());
        let begin = Cursor { due: now.millis(), id: char::MAX.to_string() };
        let after = after.map_or(&begin, |it| &it.0);
        let mut open =
            self.reader(&keys).list::<Interrupt>(RowFilter::State(OPEN), Some(after), limit.saturating_add(1)).await?;
        let more = open.len() > limit as usize;
        open.truncate(limit as usize);
        let last = open.last().filter(|_| more).map(|it| &it.record);
        let next = last.map(|it| InboxCursor(Cursor { due: it.expires_at.millis(), id: it.id.to_string() }));
        let active = self.active_policies(&keys, open.iter().map(|it| &it.record.flow)).await?;
        let mut interrupts = Vec::with_capacity(open.len());
        for interrupt in open.into_iter().map(|it| it.record) {
            // One whose flow is gone is for an audit to find: nobody knows what of it is hidden by now.
            let Some(active) = active.get(&interrupt.flow) else { continue };
            let policies = self.policies_under(&keys, *active, [interrupt.policy]).await?;
            interrupts.push(InterruptView { interrupt, policies });
        }
        Ok(InterruptListing { interrupts, next })
    }
}
