//! The data of events about changed accounts.

use countersign_domain::identity::account::{AccessChange, Account};
use countersign_domain::primitives::id::PrincipalId;
use countersign_domain::primitives::time::Timestamp;
use countersign_store::record::Stored;
use serde_json::{Value, json};

use super::actor::OPERATOR;

/// Returns the administrator who changes an account, with the time.
pub(crate) fn changed_by(by: &Stored<Account>, at: Timestamp) -> AccessChange {
    AccessChange { by: PrincipalId::from(&by.record.id), name: by.record.name.clone(), at }
}

/// Returns the operator of the host, who acts on the command line.
pub(crate) fn operator(at: Timestamp) -> AccessChange {
    let by = PrincipalId::try_from(OPERATOR).expect("a literal name is a name");
    AccessChange { by, name: OPERATOR.to_owned(), at }
}

/// Returns the data that every event about a changed account has: the account, the new revision of its row, and the
/// administrator.
pub(crate) fn change_event(stored: &Stored<Account>, by: Option<&AccessChange>) -> Value {
    let mut data = json!({"account": stored.record.id, "revision": stored.revision + 1});
    if let Some(by) = by {
        data["by"] = json!(by.by);
        data["by_name"] = json!(by.name);
    }
    data
}
