//! Asks the database to check its own files before the replay. A damaged page may contain no row that the replay reads.

use countersign_store::outage::Outage;
use countersign_store::{DAMAGES_MAX, Store, StoreError};

use super::{AuditFinding, AuditReport};

/// Table name in findings about the whole database.
const DATABASE: &str = "database";

/// Finding code for damage. It is shown instead of a row id.
const DAMAGED: &str = "database_damaged";

/// Finding code for a replay that stopped at a damage.
const NOT_REPLAYED: &str = "not_replayed";

/// Returns the damages that the database finds. A database that is too damaged to check itself is also a finding.
pub(super) async fn of(store: &dyn Store) -> Result<Vec<AuditFinding>, StoreError> {
    let said = match store.damages().await {
        Err(StoreError::Unavailable { outage: Outage::Damaged, detail }) => vec![detail],
        said => said?,
    };
    // The database may report one damage on several lines.
    let lines = said.iter().flat_map(|it| it.lines()).filter(|it| !it.is_empty());
    Ok(lines.take(DAMAGES_MAX as usize).map(|it| finding(DAMAGED, it.to_owned())).collect())
}

/// Puts the damages in front of the findings of the replay. If the replay fails on a damaged database, that failure is
/// also a finding.
pub(super) fn first(
    damages: Vec<AuditFinding>,
    replayed: Result<AuditReport, StoreError>,
) -> Result<AuditReport, StoreError> {
    if damages.is_empty() {
        return replayed;
    }
    let replayed = replayed.unwrap_or_else(|error| AuditReport {
        findings: vec![finding(NOT_REPLAYED, format!("the audit stopped at the damage: {error}"))],
        ..AuditReport::default()
    });
    let findings = damages.into_iter().chain(replayed.findings).collect();
    Ok(AuditReport { findings, ..replayed })
}

/// Returns the report for a database that is too damaged to open.
pub fn unreadable(detail: String) -> AuditReport {
    AuditReport { findings: vec![finding(DAMAGED, detail)], ..AuditReport::default() }
}

fn finding(code: &str, finding: String) -> AuditFinding {
    AuditFinding { table: DATABASE, id: code.to_owned(), finding }
}
