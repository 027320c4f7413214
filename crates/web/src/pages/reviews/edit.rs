//! `/reviews/{review}/edit`: a reviewer proposes an edit of a pending change.

use std::collections::BTreeMap;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::json::patch::PatchFormat;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::policy::{RedactedChange, Violation};
use countersign_domain::primitives::sanitize;
use countersign_domain::reviews::VoteRejected;
use countersign_domain::reviews::edit::ReviewEdit;
use countersign_service::error::{Error, Result};
use countersign_service::reviews::Reviews;
use countersign_service::reviews::details::ReviewFacts;
use countersign_service::reviews::edit::{EditRequest, EditResult};
use serde_json::Value;

use super::decide::vote_words;
use super::edit_view::{EditField, EditPage};
use super::review;
use super::review::forms;
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{error_row, headline, html, place_sent, see_other};
use crate::pages::shared::safe_text::{SafePath, SafeText};
use crate::pages::shared::visitor::Visitor;
use crate::pages::shared::vote_form::as_typed;
use crate::state::{Capability, EdgeConfig};

/// More fields than a person edits one by one. Other values can be changed in the last field.
const FIELDS_MAX: usize = 50;

/// A longer value does not fit a one-line field.
const VALUE_BYTES_MAX: usize = 2_000;

/// Prefix of a value's field. The path of the value follows.
const VALUE: &str = "value:";

/// The form as name and value pairs, because the names of its fields contain paths.
type EditFormFields = Vec<(String, String)>;

/// The errors and the typed values of a rejected form.
#[derive(Default)]
struct EditFormState {
    problem: Option<String>,
    violations: Vec<Violation>,
    typed: EditFormFields,
}

/// `GET /reviews/{review}/edit`.
pub async fn show(reviews: Capability<Reviews>, visitor: Visitor, review: web::Path<String>) -> Result<HttpResponse> {
    let facts = review::facts(&reviews, &visitor, &review).await?;
    // An old link can lead here after the review ended, and the review page explains its state.
    if !forms::may_edit(&visitor, &facts) {
        return Ok(see_other(&format!("/reviews/{}", facts.hold.id)));
    }
    let page = page(&visitor, &facts, EditFormState::default()).await?;
    Ok(html(StatusCode::OK, page.render()))
}

/// `POST /reviews/{review}/edit`.
pub async fn submit(
    edge: Capability<EdgeConfig>,
    reviews: Capability<Reviews>,
    sent: SignedInForm<EditFormFields>,
    review: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let facts = review::facts(&reviews, &visitor, &review).await?;
    let (problem, violations) = match rewrite(&edge, &reviews, &visitor, &facts, &form).await {
        Ok(EditResult::Held(next)) => return Ok(see_other(&format!("/reviews/{next}"))),
        Ok(EditResult::Rejected(violations)) => {
            ("The policy rejects this edit, as it would reject the same proposal of the agent.".to_owned(), violations)
        }
        Err(Error::Vote(refused)) => (vote_words(&refused).to_owned(), Vec::new()),
        Err(Error::Invalid { detail, .. }) => (format!("The form is not valid: {detail}."), Vec::new()),
        Err(Error::WrongState(why)) => (format!("The edit is not possible: {why}."), Vec::new()),
        Err(error) => return Err(error),
    };
    // The review is read again, because it may have ended since the form was opened.
    let facts = review::facts(&reviews, &visitor, &review).await?;
    let problem = Some(format!("{problem} Nothing was changed."));
    let again = EditFormState { problem, violations, typed: form };
    let page = page(&visitor, &facts, again).await?;
    Ok(html(StatusCode::CONFLICT, page.render()))
}

async fn rewrite(
    edge: &EdgeConfig,
    reviews: &Reviews,
    visitor: &Visitor,
    facts: &ReviewFacts,
    form: &EditFormFields,
) -> Result<EditResult> {
    let person = &visitor.account().id;
    // The policy's answer can reveal something about redacted values, so edits share the rate limit of reveals.
    edge.reveals.take(person, visitor.now()).map_err(|_| Error::TooMany)?;
    let transition = Digest::try_from(text(form, "digest")).map_err(|_| VoteRejected::Digest)?;
    let edit = read(facts, form)?;
    let ask = EditRequest { transition, edit, why: as_typed(text(form, "why")) };
    reviews.rewrite(person, &facts.hold.id, &ask).await
}

/// Reads the values that differ from the proposed ones.
fn read(facts: &ReviewFacts, form: &EditFormFields) -> Result<ReviewEdit> {
    let proposed: BTreeMap<&Pointer, &Value> = values(facts).collect();
    let mut edit = ReviewEdit::default();
    for (name, typed) in form {
        let Some(at) = name.strip_prefix(VALUE).and_then(place_sent) else { continue };
        let value = json(typed, || format!("{at} is not JSON. Put text in double quotes"))?;
        // The form sends all fields, and only changed ones belong to the edit.
        if proposed.get(&at) != Some(&&value) {
            edit.values.insert(at, value);
        }
    }
    let more = text(form, "more").trim();
    if !more.is_empty() {
        edit.more = Some(json(more, || "the field for more changes is not JSON".to_owned())?);
    }
    Ok(edit)
}

fn json(typed: &str, why: impl FnOnce() -> String) -> Result<Value> {
    parse(typed.trim().as_bytes(), &ParseLimits::default()).map_err(|_| Error::invalid("/edit", why()))
}

fn text<'a>(form: &'a EditFormFields, name: &str) -> &'a str {
    form.iter().find(|it| it.0 == name).map_or("", |it| it.1.as_str())
}

/// Returns the values that the change would set and that are not redacted.
fn values(facts: &ReviewFacts) -> impl Iterator<Item = (&Pointer, &Value)> {
    facts.diff.iter().filter_map(|it| match it {
        // Redacted values get no field, because the field would show them.
        RedactedChange::Shown { pointer, after: Some(after), .. } => Some((pointer, after)),
        _ => None,
    })
}

async fn page(visitor: &Visitor, facts: &ReviewFacts, again: EditFormState) -> Result<EditPage> {
    let field = |(pointer, after): (&Pointer, &Value)| {
        let path = SafePath::new(pointer.to_string());
        let (name, proposed) = (format!("{VALUE}{}", path.sent()), sanitize::json(&canonical(after)));
        let typed = again.typed.iter().find(|it| it.0 == name).map(|it| it.1.clone());
        EditField { path, name, value: SafeText::new(typed.unwrap_or(proposed)) }
    };
    // A long value does not fit a field, and can still be changed by the field for more changes.
    let short = |it: &(&Pointer, &Value)| canonical(it.1).len() <= VALUE_BYTES_MAX;
    let row = |it: &Violation| error_row(it.code.as_str(), &it.pointer.to_string(), &it.detail);
    Ok(EditPage {
        shell: visitor.shell(None).await?,
        action: format!("/reviews/{}/edit", facts.hold.id),
        review_url: format!("/reviews/{}", facts.hold.id),
        csrf: visitor.0.csrf.shown(),
        digest: facts.hold.transition.to_string(),
        headline: headline(&facts.hold, Some(&facts.transition), &facts.diff, facts.call.as_ref()),
        fields: values(facts).filter(short).take(FIELDS_MAX).map(field).collect(),
        hidden: facts.diff.iter().any(|it| matches!(it, RedactedChange::Hidden { .. })),
        steps: facts.transition.format == PatchFormat::JsonPatch,
        more: SafeText::new(text(&again.typed, "more")),
        why: SafeText::new(text(&again.typed, "why")),
        errors: again.violations.iter().map(row).collect(),
        problem: again.problem,
    })
}
