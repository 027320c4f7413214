//! Records of archives.

use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::archive::{Archive, ArchivedLocation};

use super::{owned, version_id};
use crate::CLOCK_SKEW_MILLIS_MAX;
use crate::record::Record;
use crate::row::{Facets, Table};

/// Returns a text that sorts before the ids of all reviews since a time. Ids start with their time.
pub fn held_since(moment: Timestamp) -> String {
    // The clocks of gateways may differ slightly.
    let millis = moment.millis().saturating_sub(2 * CLOCK_SKEW_MILLIS_MAX).max(0);
    let digits = format!("{millis:012x}");
    format!("{}-{}", &digits[..8], &digits[8..])
}

impl Record for Archive {
    const TABLE: Table = Table::Archives;
    fn id(&self) -> String {
        version_id(&self.thread, self.to)
    }
    fn facets(&self) -> Facets {
        Facets { state: self.kept.word().to_owned(), ..owned(self.thread.as_str()) }
    }
}

impl Record for ArchivedLocation {
    const TABLE: Table = Table::Whereabouts;
    fn id(&self) -> String {
        self.transition.to_string()
    }
    fn facets(&self) -> Facets {
        // Every archived version has such a row permanently. So it is as short as possible and found only by its
        // digest.
        Facets::default()
    }
}
