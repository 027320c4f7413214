//! What a form that votes says, as a ballot: of a review, an interrupt and a policy alike.

use serde::Deserialize;

use super::form_nonce::{Nonce, NonceBinding};
use super::visitor::Visitor;
use super::widgets::VerdictView;
use crate::domain::chain::hash::Digest;
use crate::domain::primitives::id::DelegationId;
use crate::domain::primitives::time::Timestamp;
use crate::domain::reviews::{Ballot, BrowserCheck, CheckboxState, VotePreview, VoteRejected, VoteVerdict, VoterProof};
use crate::service::error::{Error, Result};
use crate::service::identity::passkeys::VoteSignature;
use crate::web::pages::identity::passkeys::parsed;
use crate::web::state::AppState;

/// What every such form sends. Fields that a form leaves out are empty.
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

/// What is said above the page once more, and what was typed into its form.
#[derive(Default)]
pub struct VoteFormState {
    /// Why the vote was not counted.
    pub problem: Option<String>,
    pub typed: String,
}

impl VoteFields {
    /// The ballot that it is, if the page was this visitor's own. Whether it counts is not said here.
    pub fn ballot(&self, app: &AppState, visitor: &Visitor, page: &str) -> Result<Ballot> {
        let verdict = verdict(&self.verdict)?;
        let digest = Digest::try_from(self.digest.as_str()).map_err(|_| VoteRejected::Digest)?;
        let stage = self.stage.parse().map_err(|_| VoteRejected::Stage)?;
        let session = &visitor.0.signed_in.session.record;
        let binding = NonceBinding { session: &session.id, page, digest, stage };
        let nonce = Nonce::read(app.service.keys()?.row(), &binding, &self.nonce).ok_or(VoteRejected::NonceUsed)?;
        Ok(Ballot {
            transition: digest,
            stage,
            delegation: self.delegation()?,
            verdict,
            nonce: nonce.as_str().to_owned(),
            comment: Some(self.comment()).filter(|it| !it.trim().is_empty()),
            browser_check: match self.browser_check.as_str() {
                "match" => BrowserCheck::Match,
                "mismatch" => BrowserCheck::Mismatch,
                _ => BrowserCheck::NotRecomputed,
            },
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

    /// By which delegation they vote in another's place, if the form says one.
    fn delegation(&self) -> Result<Option<DelegationId>> {
        let delegation = Some(self.delegation.as_str()).filter(|it| !it.is_empty());
        Ok(delegation.map(|it| DelegationId::try_from(it).map_err(|_| VoteRejected::Delegation)).transpose()?)
    }

    /// In whose place, as the form says it.
    pub fn place(&self) -> &str {
        &self.delegation
    }

    /// What the voter says, as they typed it.
    pub fn comment(&self) -> String {
        as_typed(&self.comment)
    }

    /// What the page's script found.
    pub fn browser_check(&self) -> &str {
        &self.browser_check
    }

    /// Whether it is of the second look. What that told, it says back; who sends a form by hand may say nothing, and is held
    /// to nothing.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed == "yes" && (self.expects.is_empty() || VotePreview::read(&self.expects).is_some())
    }

    /// The passkey's signature, if it brings one.
    pub fn signature(&self) -> Result<Option<VoteSignature>> {
        if self.assertion.is_empty() {
            return Ok(None);
        }
        let expires_at = Timestamp::parse(&self.sign_until).ok_or(VoteRejected::SignatureExpired)?;
        Ok(Some(VoteSignature { expires_at, assertion: parsed(&self.assertion)? }))
    }
}

/// What a form's button says.
pub fn verdict(word: &str) -> Result<VoteVerdict> {
    match word {
        "approve" => Ok(VoteVerdict::Approve),
        "deny" => Ok(VoteVerdict::Deny),
        _ => Err(Error::invalid("/verdict", "the verdict must be approve or deny")),
    }
}

/// Words as they were typed: browsers send line ends as CR LF.
pub fn as_typed(words: &str) -> String {
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
