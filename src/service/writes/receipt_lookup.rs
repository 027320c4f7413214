//! What this gateway knows of a receipt that somebody holds. What the receipt proves by itself is no matter of a
//! gateway: see [`crate::domain::chain::verify_receipt_offline`].

use super::verify::peek_receipt;
use crate::domain::chain::statement::Statement;
use crate::domain::chain::verify_receipt_offline;
use crate::domain::chain::verify_receipt_offline::{ReceiptCheck, ReceiptEvidence};
use crate::domain::primitives::time::Timestamp;
use crate::domain::threads::flow::ReceiptRow;
use crate::domain::threads::thread::{HeadUse, Thread};
use crate::domain::writes::write::Write;
use crate::service::Service;
use crate::service::error::Result;

/// A receipt, and what it should belong to.
#[derive(Clone, Debug)]
pub struct PresentedReceipt {
    pub receipt: String,
    /// The entry of the version that it approved.
    pub entry: Option<String>,
    pub statement: Option<Statement>,
}

/// What this gateway knows of a receipt.
pub enum ReceiptLookupResult {
    /// It issued none of that id.
    Nothing,
    /// It issued another one of that id.
    Another,
    Issued(Box<IssuedReceiptState>),
}

/// A receipt that this gateway issued, as it stands.
pub struct IssuedReceiptState {
    pub row: ReceiptRow,
    pub expires_at: Timestamp,
    /// The version that it approves.
    pub version: u64,
    pub thread: Thread,
    /// The writer that was let through with it, if one was.
    pub write: Option<Write>,
}

impl IssuedReceiptState {
    /// Whether its version is the head still, and nobody was let through on it.
    pub fn is_unused_head(&self) -> bool {
        self.thread.head.transition == self.row.transition && self.thread.head.usage == (HeadUse::Unused {})
    }
}

impl Service {
    /// Every check that offline verification makes, by the keys of this gateway, at this moment.
    pub fn check_offline(&self, shown: &PresentedReceipt) -> Result<Vec<ReceiptCheck>> {
        let keys = self.keys()?;
        let evidence = ReceiptEvidence {
            receipt: &shown.receipt,
            keys: keys.trusted(),
            entry: shown.entry.as_deref(),
            statement: shown.statement.as_ref(),
            opening: None,
            // What a gateway pins of its own says nothing to who trusts no gateway.
            votes: &[],
            passkeys: None,
        };
        Ok(verify_receipt_offline::check(&evidence, self.now()))
    }

    /// What this gateway knows of the receipt. Only of the very bytes that it issued does it tell anything.
    pub async fn look_up_receipt(&self, receipt: &str) -> Result<ReceiptLookupResult> {
        let Some(claims) = peek_receipt(receipt) else { return Ok(ReceiptLookupResult::Nothing) };
        let keys = self.keys()?;
        let Some(row) = self.fetch::<ReceiptRow>(&keys, claims.jti.as_str()).await? else {
            return Ok(ReceiptLookupResult::Nothing);
        };
        let row = row.record;
        if row.token != receipt {
            return Ok(ReceiptLookupResult::Another);
        }
        let thread = self.thread(&keys, &row.thread).await?.record;
        let writes = self.writes_of(&keys, &thread, claims.version).await?;
        Ok(ReceiptLookupResult::Issued(Box::new(IssuedReceiptState {
            write: writes.into_iter().find(|it| it.receipt.as_ref() == Some(&row.jti)),
            expires_at: Timestamp::from_millis(claims.exp.saturating_mul(1000)),
            version: claims.version,
            thread,
            row,
        })))
    }
}
