//! The differences between two states as rows, for reviews, versions and comparisons.

use std::collections::BTreeMap;

use countersign_domain::chain::opening::Opening;
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::RedactedValueKind;
use countersign_service::error::{Error, Result};
use countersign_service::threads::history::StateDifference;
use countersign_service::threads::redacted_fields::RedactedField;

use super::proof_rows::OpeningRows;

/// Returns the rows of an opening. Redacted values are already closed in it, so no other part of the states can leak.
pub fn rows(opening: &Opening, hidden: &[RedactedField], protects: &dyn Fn(&Pointer) -> bool) -> Result<OpeningRows> {
    let opening = serde_json::to_value(opening).map_err(|_| Error::Broken("an opening"))?;
    let protected = |at: &str| named(at).is_some_and(|it| protects(&it));
    let mut rows = OpeningRows::read(&opening, canonical, &protected).map_err(|_| Error::Broken("an opening"))?;
    let words = |kind: Option<RedactedValueKind>| kind.map(|it| it.to_string()).unwrap_or_default();
    let kinds: BTreeMap<&str, (String, String)> =
        hidden.iter().map(|it| (it.pointer.as_str(), (words(it.before), words(it.after)))).collect();
    rows.name_hidden(&|at| kinds.get(at).cloned());
    Ok(rows)
}

/// Returns the rows of a state difference.
pub fn rows_of(differing: &StateDifference) -> Result<OpeningRows> {
    // The versions can have different policies, and a value counts as protected if any of them protects it.
    let protects = |at: &Pointer| differing.policies.iter().any(|it| it.protected().touches(at));
    rows(&differing.opening, &differing.hidden, &protects)
}

pub fn named(pointer: &str) -> Option<Pointer> {
    Pointer::try_from(pointer).ok()
}
