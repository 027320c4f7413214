//! Reasons why verify refuses a write.

use serde::{Deserialize, Serialize};

use crate::primitives::named_enum::described_enum;

described_enum! { named_json_enum:
    /// Reason why verify refuses a write.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum DenialCode {
        /// The request is not a verify request.
        Malformed = "malformed": "The request is not a valid request for `verify`.",
        /// The token is not a writer token of this thread's flow.
        Forbidden = "forbidden": "This token may not verify writes of this thread.",
        /// The thread does not exist.
        UnknownThread = "unknown_thread": "There is no such thread.",
        /// The thread is an imported episode.
        Imported = "imported": "The run was imported: it can be read, and nothing of it may be written.",
        /// Verifying is halted.
        Halted = "halted": "Verifying is halted. Nothing may be written until an administrator lifts the halt.",
        /// The thread is closed.
        Closed = "closed": "The thread is closed.",
        /// The thread is a branch.
        Branch = "branch": "The thread is a branch, and branches are never written. Join it and verify the result of the join.",
        /// The stored chain differs from the signed chain.
        ChainBroken = "chain_broken": "The stored chain differs from the signed chain. Write nothing, and run an audit of the gateway.",
        /// The transition is no longer the head.
        NotHead = "not_head": "The transition is not the thread's head.",
        /// The flow no longer accepts the head's policy.
        PolicyMismatch = "policy_mismatch": "The head was admitted by a policy that is no longer accepted. Reaffirm the head.",
        /// The head was reserved by a write before.
        AlreadyUsed = "already_used": "The head was already reserved by a write.",
        /// Another write holds the lease.
        WriteInProgress = "write_in_progress": "Another write of this thread is in progress.",
        /// The head needs a receipt.
        ReceiptMissing = "receipt_missing": "The head may be written only with the receipt of its approval.",
        /// The receipt does not have the form of a receipt.
        ReceiptMalformed = "receipt_malformed": "The receipt is malformed.",
        /// The receipt's key does not sign receipts.
        UnknownKey = "unknown_key": "The receipt's key is unknown or no longer valid.",
        /// The receipt's signature is invalid.
        SignatureInvalid = "signature_invalid": "The receipt's signature is not valid.",
        /// Another gateway issued the receipt.
        IssuerMismatch = "issuer_mismatch": "The receipt was issued by another gateway.",
        /// The receipt is for another writer.
        AudienceMismatch = "audience_mismatch": "The receipt is for another writer.",
        /// The receipt is not valid yet.
        NotYetValid = "not_yet_valid": "The receipt is not valid yet.",
        /// The receipt has expired.
        Expired = "expired": "The receipt has expired; reaffirm the head.",
        /// The receipt is for another thread.
        ThreadMismatch = "thread_mismatch": "The receipt is for another thread or flow.",
        /// The receipt is for another version.
        VersionMismatch = "version_mismatch": "The receipt is for another version.",
        /// The receipt is for another state.
        DigestMismatch = "digest_mismatch": "The receipt is not for this transition.",
        /// The receipt was revoked.
        Revoked = "revoked": "The receipt was revoked.",
        /// The state does not have the values that the writer expects.
        ExpectationFailed = "expectation_failed": "The state is not what the writer expects.",
    }
}
