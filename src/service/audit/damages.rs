//! The database's own check of its files, before anything is replayed: a damaged page need not hold a row that a replay reads.

use super::{AuditFinding, AuditReport};
use crate::store::outage::Outage;
use crate::store::{DAMAGES_MAX, Store, StoreError};

/// The table that findings about the whole database name.
const DATABASE: &str = "database";

/// The code of a damage, in the place of an id.
const DAMAGED: &str = "database_damaged";

/// The code of a replay that a damage ended.
const NOT_REPLAYED: &str = "not_replayed";

/// What the database finds damaged. A database that is too damaged to check itself is a finding, too.
pub(super) async fn of(store: &dyn Store) -> Result<Vec<AuditFinding>, StoreError> {
    let said = match store.damages().await {
        Err(StoreError::Unavailable { outage: Outage::Damaged, detail }) => vec![detail],
        said => said?,
    };
    // One sentence may be several lines.
    let lines = said.iter().flat_map(|it| it.lines()).filter(|it| !it.is_empty());
    Ok(lines.take(DAMAGES_MAX as usize).map(|it| finding(DAMAGED, it.to_owned())).collect())
}

/// The damages before what a replay found. A replay that fails on a damaged database is a finding as well.
pub(super) fn first(
    damages: Vec<AuditFinding>,
    replayed: Result<AuditReport, StoreError>,
) -> Result<AuditReport, StoreError> {
    if damages.is_empty() {
        return replayed;
    }
    let replayed = replayed.unwrap_or_else(|error| AuditReport {
        findings: vec![finding(NOT_REPLAYED, format!("the rest of the audit could not be done: {error}"))],
        ..AuditReport::default()
    });
    let findings = damages.into_iter().chain(replayed.findings).collect();
    Ok(AuditReport { findings, ..replayed })
}

/// The report on a database that is too damaged to be opened.
pub fn unreadable(detail: String) -> AuditReport {
    AuditReport { findings: vec![finding(DAMAGED, detail)], ..AuditReport::default() }
}

fn finding(code: &str, finding: String) -> AuditFinding {
    AuditFinding { table: DATABASE, id: code.to_owned(), finding }
}
