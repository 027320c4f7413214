//! Lists rejected attempts. They are stored apart from every state.

use countersign_domain::identity::party::Party;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::transition::Rejection;
use countersign_store::{Cursor, RowFilter};

use crate::error::Result;
use crate::proposals::Proposals;

/// The cursor of a list with the latest entry first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OlderCursor(Cursor);

impl OlderCursor {
    /// Returns a cursor after the row with this time and id.
    pub(crate) fn at(at: Timestamp, id: &str) -> Self {
        Self(Cursor { due: at.millis(), id: id.to_owned() })
    }

    pub(crate) const fn cursor(&self) -> &Cursor {
        &self.0
    }

    /// Returns the cursor as a URL parameter.
    pub fn token(&self) -> String {
        format!("{}.{}", self.0.due, self.0.id)
    }

    /// Reads the output of [`Self::token`]. Returns `None` for other text.
    pub fn read(token: &str) -> Option<Self> {
        let (due, id) = token.split_once('.')?;
        Some(Self(Cursor { due: due.parse().ok()?, id: id.to_owned() }))
    }
}

impl Proposals {
    /// Returns the latest rejected attempts of all flows, and the cursor of the next page.
    pub async fn rejections(
        &self,
        reader: &Party,
        after: Option<&OlderCursor>,
        limit: u32,
    ) -> Result<(Vec<Rejection>, Option<OlderCursor>)> {
        let keys = self.core.keys()?;
        let page =
            self.core.reader(&keys).list::<Rejection>(RowFilter::Latest, after.map(OlderCursor::cursor), limit).await?;
        let mut rejections = Vec::with_capacity(page.len());
        for rejection in page.into_iter().map(|it| it.record) {
            let own = rejection.own.is_some()
                && reader.could_have_written_as(&self.threads.party_of(&keys, &rejection.principal).await?);
            rejections.push(if own { rejection.as_its_own() } else { rejection });
        }
        // A short page is the last one.
        let last = rejections.last().filter(|_| rejections.len() == limit as usize);
        let next = last.map(|it| OlderCursor::at(it.at, &it.identity.to_string()));
        Ok((rejections, next))
    }
}
