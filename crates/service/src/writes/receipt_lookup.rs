//! The state of a receipt in this gateway. Offline verification of a receipt is in
//! [`countersign_domain::chain::verify_receipt_offline`].

use countersign_domain::chain::receipt::IssuedReceipt;
use countersign_domain::chain::statement::Statement;
use countersign_domain::chain::verify_receipt_offline;
use countersign_domain::chain::verify_receipt_offline::{ReceiptCheck, ReceiptEvidence};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::flow::ReceiptRow;
use countersign_domain::threads::thread::{HeadUse, Thread};
use countersign_domain::writes::write::Write;

use super::verify::peek_receipt;
use crate::error::Result;
use crate::writes::Writes;

/// A receipt, and the evidence that it should belong to.
#[derive(Clone, Debug)]
pub struct PresentedReceipt {
    pub receipt: String,
    /// The entry of the version that it approved.
    pub entry: Option<String>,
    pub statement: Option<Statement>,
}

/// The result of a receipt lookup.
pub enum ReceiptLookupResult {
    /// The gateway issued no receipt with this id.
    Nothing,
    /// The gateway issued a different receipt with this id.
    Another,
    Issued(Box<IssuedReceiptState>),
}

/// The current state of a receipt that this gateway issued.
pub struct IssuedReceiptState {
    pub row: ReceiptRow,
    pub expires_at: Timestamp,
    /// The version that it approves.
    pub version: u64,
    pub thread: Thread,
    /// The write that used the receipt, if any.
    pub write: Option<Write>,
}

impl IssuedReceiptState {
    /// Returns whether the version is still the head and unused.
    pub fn is_unused_head(&self) -> bool {
        self.thread.head.transition == self.row.transition && self.thread.head.usage == (HeadUse::Unused {})
    }
}

impl Writes {
    /// Caches a receipt that a change has issued.
    pub(crate) fn cache_receipt(&self, receipt: IssuedReceipt) {
        self.issued.put(receipt);
    }

    /// Runs every check of offline verification now, with the keys of this gateway.
    pub fn check_offline(&self, shown: &PresentedReceipt) -> Result<Vec<ReceiptCheck>> {
        let keys = self.core.keys()?;
        let evidence = ReceiptEvidence {
            receipt: &shown.receipt,
            keys: keys.trusted(),
            entry: shown.entry.as_deref(),
            statement: shown.statement.as_ref(),
            opening: None,
            // Passkey votes that the gateway pins itself prove nothing to a verifier that does not trust the
            // gateway.
            votes: &[],
            passkeys: None,
        };
        Ok(verify_receipt_offline::check(&evidence, self.core.now()))
    }

    /// Returns the state of a receipt. The token must be byte for byte the issued one, so that a forged token
    /// with a known id reveals nothing.
    pub async fn look_up_receipt(&self, receipt: &str) -> Result<ReceiptLookupResult> {
        let Some(claims) = peek_receipt(receipt) else { return Ok(ReceiptLookupResult::Nothing) };
        let keys = self.core.keys()?;
        let Some(row) = self.core.fetch::<ReceiptRow>(&keys, claims.jti.as_str()).await? else {
            return Ok(ReceiptLookupResult::Nothing);
        };
        let row = row.record;
        // Receipts are compared as bytes, because a different encoding of the same claims was never issued.
        if row.token != receipt {
            return Ok(ReceiptLookupResult::Another);
        }
        let thread = self.core.thread(&keys, &row.thread).await?.record;
        let writes = self.threads.writes_of(&keys, &thread, claims.version).await?;
        Ok(ReceiptLookupResult::Issued(Box::new(IssuedReceiptState {
            write: writes.into_iter().find(|it| it.receipt.as_ref() == Some(&row.jti)),
            expires_at: Timestamp::from_millis(claims.exp.saturating_mul(1000)),
            version: claims.version,
            thread,
            row,
        })))
    }
}
