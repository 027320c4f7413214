//! Why a writer is not let through.

use serde::{Deserialize, Serialize};

macro_rules! denials {
    ($($(#[$doc:meta])* $name:ident = $text:literal: $detail:literal,)*) => {
        /// Why a writer is not let through.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum DenialCode { $($(#[$doc])* $name,)* }

        impl DenialCode {
            /// Every code, in the order of the checks.
            pub const ALL: &'static [DenialCode] = &[$(DenialCode::$name,)*];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What it means and what to do, in fixed words.
            pub const fn detail(self) -> &'static str {
                match self { $(Self::$name => $detail,)* }
            }
        }
    };
}

denials! {
    /// The request is not what verify takes.
    Malformed = "malformed": "The request is not what verify takes.",
    /// The token is not a writer's of this thread's flow.
    Forbidden = "forbidden": "This token may not verify writes of this thread.",
    /// No such thread.
    UnknownThread = "unknown_thread": "There is no such thread.",
    /// The thread is a run that was imported.
    Imported = "imported": "This is a run that was imported: it is read, and nothing of it is written.",
    /// Someone stopped verifying.
    Halted = "halted": "Verifying is halted. Nothing may be written until an administrator lifts the halt.",
    /// The thread is closed.
    Closed = "closed": "The thread is closed.",
    /// The thread is a branch.
    Branch = "branch": "The thread is a branch: nothing of it is written. Join it, and verify what comes of that.",
    /// What is stored is not what was signed.
    ChainBroken = "chain_broken": "The stored chain is not the one that was signed. Write nothing and have the gateway audited.",
    /// Something else was committed since.
    NotHead = "not_head": "The transition is not the thread's head.",
    /// The head stands under a policy that is not accepted any more.
    PolicyMismatch = "policy_mismatch": "The head was judged by a policy that is not accepted any more; reaffirm it.",
    /// The head was given to a write before.
    AlreadyUsed = "already_used": "The head was already given to a write.",
    /// The head is another write's for now.
    WriteInProgress = "write_in_progress": "Another write of this thread is in progress.",
    /// The head needs a receipt.
    ReceiptMissing = "receipt_missing": "The head may be written only with the receipt of its approval.",
    /// The receipt is not one of ours by its form.
    ReceiptMalformed = "receipt_malformed": "The receipt is not a receipt by its form.",
    /// The receipt's key is not one that signs receipts.
    UnknownKey = "unknown_key": "The receipt's key is unknown or does not sign any more.",
    /// The signature is not that key's.
    SignatureInvalid = "signature_invalid": "The receipt's signature is not valid.",
    /// Another gateway's.
    IssuerMismatch = "issuer_mismatch": "The receipt was issued by another gateway.",
    /// Another writer's.
    AudienceMismatch = "audience_mismatch": "The receipt is for another writer.",
    /// Too early.
    NotYetValid = "not_yet_valid": "The receipt is not valid yet.",
    /// Too late.
    Expired = "expired": "The receipt has expired; reaffirm the head.",
    /// Another thread's.
    ThreadMismatch = "thread_mismatch": "The receipt is for another thread or flow.",
    /// Another version's.
    VersionMismatch = "version_mismatch": "The receipt is for another version.",
    /// Another state's.
    DigestMismatch = "digest_mismatch": "The receipt is not for this transition.",
    /// Taken back.
    Revoked = "revoked": "The receipt was revoked.",
    /// The writer expected other values.
    ExpectationFailed = "expectation_failed": "The state is not what the writer expects.",
}
