//! Reads a ballot from the decision form of a review, an interrupt or a policy change request.

use countersign_domain::chain::hash::Digest;
use countersign_domain::primitives::id::DelegationId;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{
    Ballot, BrowserCheck, CheckboxState, VotePreview, VoteRejected, VoteVerdict, VoterProof,
};
use countersign_service::error::{Error, Result};
use countersign_service::identity::passkeys::VoteSignature;
use serde::Deserialize;

use super::visitor::Visitor;
use super::widgets::VerdictView;
use crate::pages::identity::passkeys::parsed;

/// The fields of every decision form. Missing fields are empty.
#[derive(Clone, Deserialize, Default)]
#[serde(default)]
pub struct VoteFields {
    digest: String,
    nonce: String,
    stage: String,
    #[serde(rename = "for")]
    delegation: String,
    verdict: String,
    comment: String,
    browser_check: String,
    outcome_unknown: String,
    confirmed: String,
    expects: String,
    typed: String,
    sign_until: String,
    assertion: String,
}

/// The error and the typed comment of a rejected form.
#[derive(Default)]
pub struct VoteFormState {
    /// Why the vote was not counted.
    pub problem: Option<String>,
    pub typed: String,
}

impl VoteFields {
    /// Reads the ballot. The nonce must belong to this session. The rules of the vote are not checked here.
    pub fn ballot(&self, visitor: &Visitor, page: &str) -> Result<Ballot> {
        let verdict = verdict(&self.verdict)?;
        let digest = Digest::try_from(self.digest.as_str()).map_err(|_| VoteRejected::Digest)?;
        let stage = self.stage.parse().map_err(|_| VoteRejected::Stage)?;
        let session = &visitor.0.signed_in.session.record;
        // The nonce binds the form to one session, review, digest and stage, so a copied form counts nowhere else.
        let nonce = visitor.read_nonce(page, digest, stage, &self.nonce)?;
        Ok(Ballot {
            transition: digest,
            stage,
            delegation: self.delegation()?,
            verdict,
            nonce,
            comment: Some(self.comment()).filter(|it| !it.trim().is_empty()),
            browser_check: match self.browser_check.as_str() {
                "match" => BrowserCheck::Match,
                "mismatch" => BrowserCheck::Mismatch,
                // Pages also work without JavaScript, so a missing check is recorded and not refused.
                _ => BrowserCheck::NotRecomputed,
            },
            // The session records how its person signed in, which a stage with a passkey requirement checks.
            proof: VoterProof::of_session(session),
            typed: Some(self.typed.clone()),
            outcome_unknown_accepted: if self.outcome_unknown == "yes" {
                CheckboxState::Yes
            } else {
                CheckboxState::No
            },
            told: VotePreview::read(&self.expects),
        })
    }

    /// Reads the delegation, if the form has one.
    fn delegation(&self) -> Result<Option<DelegationId>> {
        let delegation = Some(self.delegation.as_str()).filter(|it| !it.is_empty());
        Ok(delegation.map(|it| DelegationId::try_from(it).map_err(|_| VoteRejected::Delegation)).transpose()?)
    }

    /// Returns the delegation id of the form.
    pub fn place(&self) -> &str {
        &self.delegation
    }

    /// Returns the typed comment.
    pub fn comment(&self) -> String {
        as_typed(&self.comment)
    }

    /// Returns the result of the script's check.
    pub fn browser_check(&self) -> &str {
        &self.browser_check
    }

    /// Checks whether the confirm page sent the form. That page also sends back the effect that it showed. A form that
    /// was sent by hand can leave the effect out, and then it is not compared.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed == "yes" && (self.expects.is_empty() || VotePreview::read(&self.expects).is_some())
    }

    /// Reads the signature of the passkey, if the form has one.
    pub fn signature(&self) -> Result<Option<VoteSignature>> {
        // The field is empty if no passkey signed, and the service decides whether the stage requires one.
        if self.assertion.is_empty() {
            return Ok(None);
        }
        let expires_at = Timestamp::parse(&self.sign_until).ok_or(VoteRejected::SignatureExpired)?;
        Ok(Some(VoteSignature { expires_at, assertion: parsed(&self.assertion)? }))
    }
}

/// Reads the verdict from the value of the pressed button.
pub fn verdict(word: &str) -> Result<VoteVerdict> {
    match word {
        // The verdict has no default, so that a damaged form never becomes a vote.
        "approve" => Ok(VoteVerdict::Approve),
        "deny" => Ok(VoteVerdict::Deny),
        _ => Err(Error::invalid("/verdict", "the verdict must be approve or deny")),
    }
}

/// Returns the text as typed, because browsers send line ends as CR LF.
pub fn as_typed(words: &str) -> String {
    // Browsers send line breaks of a text area as CRLF, and the stored text should be what the person typed.
    words.replace("\r\n", "\n")
}

impl From<VoteVerdict> for VerdictView {
    fn from(verdict: VoteVerdict) -> Self {
        match verdict {
            VoteVerdict::Approve => Self::Approve,
            VoteVerdict::Deny => Self::Deny,
        }
    }
}
