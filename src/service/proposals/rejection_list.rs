//! Rejected attempts: kept apart from every state, to be looked through.

use crate::domain::identity::party::Party;
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::transition::Rejection;
use crate::service::Service;
use crate::service::error::Result;
use crate::store::{Cursor, RowFilter};

/// Where a list goes on that has the latest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OlderCursor(Cursor);

impl OlderCursor {
    /// After the row of that moment and name.
    pub(in crate::service) fn at(at: Timestamp, id: &str) -> Self {
        Self(Cursor { due: at.millis(), id: id.to_owned() })
    }

    pub(in crate::service) const fn cursor(&self) -> &Cursor {
        &self.0
    }

    /// As an address carries it.
    pub fn token(&self) -> String {
        format!("{}.{}", self.0.due, self.0.id)
    }

    /// Reads what [`Self::token`] wrote.
    pub fn read(token: &str) -> Option<Self> {
        let (due, id) = token.split_once('.')?;
        Some(Self(Cursor { due: due.parse().ok()?, id: id.to_owned() }))
    }
}

impl Service {
    /// Rejected attempts of every flow, the latest first, and where the next page begins.
    pub async fn rejections(
        &self,
        reader: &Party,
        after: Option<&OlderCursor>,
        limit: u32,
    ) -> Result<(Vec<Rejection>, Option<OlderCursor>)> {
        let keys = self.keys()?;
        let page =
            self.reader(&keys).list::<Rejection>(RowFilter::Latest, after.map(OlderCursor::cursor), limit).await?;
        let mut rejections = Vec::with_capacity(page.len());
        for rejection in page.into_iter().map(|it| it.record) {
            let own = rejection.own.is_some()
                && reader.could_have_written_as(&self.party_of(&keys, &rejection.principal).await?);
            rejections.push(if own { rejection.as_its_own() } else { rejection });
        }
        let last = rejections.last().filter(|_| rejections.len() == limit as usize);
        let next = last.map(|it| OlderCursor::at(it.at, &it.identity.to_string()));
        Ok((rejections, next))
    }
}
