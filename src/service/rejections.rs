//! Rejected attempts: kept apart from every state, to be looked through.

use super::Service;
use super::error::Result;
use crate::domain::transition::Rejection;
use crate::store::{Cursor, Filter};

/// Where a list of rejections goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Older(Cursor);

impl Older {
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
    pub async fn rejections(&self, after: Option<&Older>, limit: u32) -> Result<(Vec<Rejection>, Option<Older>)> {
        let keys = self.keys()?;
        let page = self.reader(&keys).list::<Rejection>(Filter::Latest, after.map(|it| &it.0), limit).await?;
        let rejections: Vec<Rejection> = page.into_iter().map(|it| it.record).collect();
        let last = rejections.last().filter(|_| rejections.len() == limit as usize);
        let next = last.map(|it| Older(Cursor { due: it.at.millis(), id: it.identity.to_string() }));
        Ok((rejections, next))
    }
}
