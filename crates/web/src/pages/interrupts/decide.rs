//! `POST /interrupts/{interrupt}/decision`: shows the confirm page, then counts the vote.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::reviews::{Ballot, VotePreview, VoteRejected};
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::interrupts::InterruptView;
use countersign_service::interrupts::Interrupts;

use super::view::InterruptConfirmPage;
use super::{find, page, said};
use crate::pages::reviews::decide::{MissingPasskeySignature, signing, words};
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, moment, see_other, span};
use crate::pages::shared::layout::DigestText;
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::visitor::Visitor;
use crate::pages::shared::vote_form::{VoteFields, VoteFormState};
use crate::state::Capability;

pub async fn submit(
    identity: Capability<Identity>,
    interrupts: Capability<Interrupts>,
    sent: SignedInForm<VoteFields>,
    id: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let shown = find(&interrupts, &id).await?;
    let asked = InterruptDecisionContext {
        identity: &identity,
        interrupts: &interrupts,
        visitor: &visitor,
        shown: &shown,
        form: &form,
    };
    let error = match asked.decide().await {
        Ok(response) => return Ok(response),
        Err(error) => error,
    };
    let Some(problem) = words(&error) else { return Err(error) };
    let again = VoteFormState { problem: Some(problem), typed: form.comment() };
    // The interrupt is read again, because another vote may have caused the error.
    let now = find(&interrupts, &id).await?;
    let page = page(&interrupts, &visitor, &now, again).await?;
    Ok(html(StatusCode::CONFLICT, page.render()))
}

struct InterruptDecisionContext<'a> {
    identity: &'a Identity,
    interrupts: &'a Interrupts,
    visitor: &'a Visitor,
    shown: &'a InterruptView,
    form: &'a VoteFields,
}

impl InterruptDecisionContext<'_> {
    async fn decide(&self) -> Result<HttpResponse> {
        let ballot = self.ballot()?;
        // A form without the previewed effect did not come from the confirm page, so that page is shown first.
        if !self.form.is_confirmed() || ballot.told.is_none() {
            return self.confirm(&ballot, None).await;
        }
        let interrupt = &self.shown.interrupt;
        let signature = self.form.signature()?;
        let voter = &self.visitor.account().id;
        match self.interrupts.vote_on_interrupt(voter, &interrupt.id, &ballot, signature.as_ref()).await {
            // The redirect keeps a reload from sending the vote again.
            Ok(_) => Ok(see_other(&format!("/interrupts/{}", interrupt.id))),
            // The confirm page can correct these two errors, so the reviewer stays on it.
            Err(error @ Error::Vote(VoteRejected::NotTyped | VoteRejected::MovedOn)) => {
                self.look_again(&ballot, &error).await
            }
            Err(error) => Err(error),
        }
    }

    /// Renders the confirm page again with the current interrupt: the typed digits were wrong, or others have voted.
    async fn look_again(&self, ballot: &Ballot, refused: &Error) -> Result<HttpResponse> {
        let shown = find(self.interrupts, self.shown.interrupt.id.as_str()).await?;
        InterruptDecisionContext { shown: &shown, ..*self }.confirm(ballot, words(refused)).await
    }

    /// Reads the ballot from the form. The nonce must belong to this session. The rules of the vote are not checked
    /// here.
    fn ballot(&self) -> Result<Ballot> {
        self.form.ballot(self.visitor, self.shown.interrupt.id.as_str())
    }

    /// Returns the effect that the ballot would have now.
    async fn prospect(&self, ballot: &Ballot) -> Result<VotePreview> {
        let (interrupt, voter) = (&self.shown.interrupt, self.visitor.account());
        let typed = interrupt.asks_to_type(ballot.stage, ballot.verdict);
        let roll = self.interrupts.roll_of_interrupt(interrupt, &voter.id).await?;
        // The preview takes the digits as typed correctly, so that only the other rules can reject it.
        let confirmed = Ballot { typed, told: None, ..ballot.clone() };
        // The vote runs on a copy, so that the preview changes nothing.
        Ok(interrupt.clone().vote(confirmed, voter, &roll)?.prospect())
    }

    /// Renders the confirm page. A ballot that would be rejected is rejected here, by the same rules.
    async fn confirm(&self, ballot: &Ballot, problem: Option<String>) -> Result<HttpResponse> {
        let (shown, visitor) = (self.shown, self.visitor);
        let (interrupt, now) = (&shown.interrupt, visitor.now());
        let prospect = self.prospect(ballot).await?;
        let must = interrupt.jury().passkey_need(ballot.stage).met_by(&ballot.proof, now).is_err();
        let voter = visitor.account();
        let challenge = || self.identity.vote_challenge(interrupt, &voter.id, ballot);
        let page = InterruptConfirmPage {
            shell: visitor.shell(None).await?,
            interrupt_url: format!("/interrupts/{}", interrupt.id),
            action: format!("/interrupts/{}/decision", interrupt.id),
            csrf: visitor.0.csrf.shown(),
            digest: DigestText::new(ballot.transition.to_string()),
            nonce: ballot.nonce.clone(),
            stage: ballot.stage,
            verdict: ballot.verdict.into(),
            host: SafeLine::new(interrupt.source.name.as_str()),
            flow: SafeLine::new(interrupt.flow.as_str()),
            said: said(shown),
            deadline: moment(interrupt.expires_at, now),
            consequence: consequence(shown, prospect),
            expects: prospect.word(),
            comment: SafeText::new(ballot.comment.clone().unwrap_or_default()),
            signing: signing(self.identity, &voter.id, must.then_some(MissingPasskeySignature), challenge).await?,
            typing: interrupt.asks_to_type(ballot.stage, ballot.verdict),
            problem,
        };
        let status = if page.problem.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
        Ok(html(status, page.render()))
    }
}

/// Describes the effect of the vote on the confirm page.
fn consequence(shown: &InterruptView, prospect: VotePreview) -> String {
    match prospect {
        VotePreview::Waits => "Your vote is counted. The request waits for more votes.".to_owned(),
        VotePreview::Ends => "The gateway reports the denial to the host application.".to_owned(),
        VotePreview::Passes => {
            let good_for = span(shown.good_for().as_secs());
            format!(
                "The gateway reports the approval to the host application, which can continue within {good_for}. \
                 This gateway writes nothing."
            )
        }
    }
}
