//! What a form that votes says, as a ballot: of a review, an interrupt and a policy alike.

use super::nonce::{Binding, Nonce};
use super::visitor::Visitor;
use crate::domain::chain::hash::Digest;
use crate::domain::review::{Ballot, BrowserCheck, Proof, Ticked, Verdict, VoteRefused};
use crate::service::error::{Error, Result};
use crate::web::app::App;
use crate::web::pages::view::facts::Verdict as Button;

/// What every such form sends.
pub struct Said<'a> {
    /// Of what was on the page.
    pub digest: &'a str,
    /// The page's own.
    pub nonce: &'a str,
    /// Yes or no.
    pub verdict: &'a str,
    /// In the voter's words.
    pub comment: &'a str,
}

impl Said<'_> {
    /// The ballot that it is, if the page was this visitor's own. Whether it counts is not said here.
    pub fn ballot(&self, app: &App, visitor: &Visitor, (page, stage): (&str, u32)) -> Result<Ballot> {
        let verdict = verdict(self.verdict)?;
        let digest = Digest::try_from(self.digest).map_err(|_| VoteRefused::Digest)?;
        let session = &visitor.0.signed_in.session.record;
        let binding = Binding { session: &session.id, page, digest, stage };
        let nonce = Nonce::read(app.service.keys()?.row(), &binding, self.nonce).ok_or(VoteRefused::NonceUsed)?;
        Ok(Ballot {
            transition: digest,
            stage,
            delegation: None,
            verdict,
            nonce: nonce.as_str().to_owned(),
            comment: Some(as_typed(self.comment)).filter(|it| !it.trim().is_empty()),
            browser_check: BrowserCheck::NotRecomputed,
            proof: Proof::of_session(session),
            typed: None,
            outcome_unknown_accepted: Ticked::No,
            told: None,
        })
    }
}

/// What a form's button says.
pub fn verdict(word: &str) -> Result<Verdict> {
    match word {
        "approve" => Ok(Verdict::Approve),
        "deny" => Ok(Verdict::Deny),
        _ => Err(Error::invalid("/verdict", "say approve or deny")),
    }
}

/// Words as they were typed: browsers send line ends as CR LF.
pub fn as_typed(words: &str) -> String {
    words.replace("\r\n", "\n")
}

impl From<Verdict> for Button {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Approve => Self::Approve,
            Verdict::Deny => Self::Deny,
        }
    }
}
