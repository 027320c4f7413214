//! The forms of the review page that are not the decision. Each form has its own handler.

use std::time::Duration;

use countersign_domain::chain::statement::TransitionType;
use countersign_domain::identity::account::PersonRole;
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::reviews::{EXTENSIONS_MAX, Vote};
use countersign_service::error::Result;
use countersign_service::reviews::details::ReviewFacts;

use crate::pages::reviews::discussion_view::{CommentForm, DeadlineOption, ExtensionForm, WithdrawalForm};
use crate::pages::reviews::reveal_view::RevealForm;
use crate::pages::shared::format::moment;
use crate::pages::shared::safe_text::{SafeLine, SafePath, SafeText};
use crate::pages::shared::visitor::Visitor;

/// Extensions to choose from. The maximum is added to them.
const MORE: [(u64, &str); 4] =
    [(3600, "1 hour more"), (4 * 3600, "4 hours more"), (24 * 3600, "1 day more"), (72 * 3600, "3 days more")];

/// The stage in the nonce of a form that belongs to no stage.
pub const NO_STAGE: u32 = 0;

/// Returns the page name for the nonce of a comment. A review id has no slash, so the nonce fits no other form.
pub fn comment_page(facts: &ReviewFacts) -> String {
    format!("{}/comments", facts.hold.id)
}

/// Returns the comment form. Auditors only read and have none.
pub fn comment(visitor: &Visitor, facts: &ReviewFacts) -> Result<Option<CommentForm>> {
    // Auditors only read, so they take no part in the discussion.
    if visitor.account().role == PersonRole::Auditor {
        return Ok(None);
    }
    let page = comment_page(facts);
    let nonce = visitor.nonce(&page, facts.hold.transition, NO_STAGE)?;
    Ok(Some(CommentForm {
        action: format!("/reviews/{}/comments", facts.hold.id),
        csrf: visitor.0.csrf.shown(),
        nonce,
        typed: SafeText::new(""),
        problem: None,
    }))
}

/// Returns the page name for the nonce of a withdrawal. A review id has no slash, so the nonce fits no other form.
pub fn withdrawal_page(facts: &ReviewFacts, vote: usize) -> String {
    format!("{}/withdrawal/{vote}", facts.hold.id)
}

/// Returns the withdrawal form if the visitor has a counted vote and the review is open.
pub fn withdrawal(visitor: &Visitor, facts: &ReviewFacts) -> Result<Option<WithdrawalForm>> {
    let mine = |vote: &Vote| vote.stands() && vote.takes_up(&visitor.account().id);
    let Some(vote) = facts.hold.votes.iter().position(mine).filter(|_| facts.hold.is_open(facts.now)) else {
        return Ok(None);
    };
    let page = withdrawal_page(facts, vote);
    let nonce = visitor.nonce(&page, facts.hold.transition, NO_STAGE)?;
    Ok(Some(WithdrawalForm {
        action: format!("/reviews/{}/withdrawal", facts.hold.id),
        csrf: visitor.0.csrf.shown(),
        nonce,
        vote: vote.to_string(),
        cast_by: Some(&facts.hold.votes[vote])
            // A delegate may have voted for this person, who should know whose vote the form withdraws.
            .filter(|it| it.reviewer != visitor.account().id)
            .map(|it| SafeLine::new(it.name.as_str())),
    }))
}

/// Checks whether the change can be edited and the visitor may edit it.
pub fn may_edit(visitor: &Visitor, facts: &ReviewFacts) -> bool {
    let proposed = matches!(facts.transition.statement.kind, TransitionType::Propose | TransitionType::Edit);
    let editor = facts.transition.editor.as_ref();
    // An agent waits for exactly the call that it asked for.
    facts.thread.request.is_none()
        && proposed
        && facts.hold.is_open(facts.now)
        && facts.hold.may_rewrite(visitor.account(), editor, facts.now).is_ok()
}

/// Returns the extension form if the visitor may extend the deadline and the limit is not reached.
pub fn extension(visitor: &Visitor, facts: &ReviewFacts) -> Option<ExtensionForm> {
    let (hold, now) = (&facts.hold, facts.now);
    let (deadline, latest) = (hold.expires_at, hold.latest_deadline());
    let may =
        hold.is_open(now) && hold.extensions.len() < EXTENSIONS_MAX && hold.may_extend(visitor.account(), now).is_ok();
    // An agent does not wait longer for its call.
    if !may || deadline >= latest || facts.thread.request.is_some() {
        return None;
    }
    let some = MORE.iter().map(|(secs, words)| (deadline.plus(Duration::from_secs(*secs)), *words));
    // Later choices would be refused, so the policy's limit is offered in their place.
    let all = some.filter(|(until, _)| *until < latest).chain([(latest, "maximum")]);
    let choice = |(until, words): (Timestamp, &'static str)| DeadlineOption {
        value: until.to_string(),
        words: format!("{words}, until {}", moment(until, now).words),
    };
    Some(ExtensionForm {
        action: format!("/reviews/{}/extension", hold.id),
        csrf: visitor.0.csrf.shown(),
        deadline: deadline.to_string(),
        choices: all.map(choice).collect(),
        typed: SafeText::new(""),
        problem: None,
    })
}

/// Returns the reveal form if the visitor may reveal values and there is a redacted single value.
pub fn reveal(visitor: &Visitor, facts: &ReviewFacts) -> Option<RevealForm> {
    // The service checks the groups again, so here they only decide whether the form is useful.
    facts.reveal_groups(visitor.account()).ok()?;
    let single = facts.hidden.iter().filter(|it| it.is_one_value());
    let places: Vec<SafePath> = single.map(|it| SafePath::new(it.pointer.to_string())).collect();
    (!places.is_empty()).then(|| RevealForm {
        action: format!("/reviews/{}/reveal", facts.hold.id),
        csrf: visitor.0.csrf.shown(),
        places,
        typed: SafeText::new(""),
        problem: None,
    })
}
