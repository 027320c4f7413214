//! `/amendments/{amendment}`: shows and decides a policy change request.

use std::collections::BTreeSet;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use askama::Template as _;
use countersign_domain::policy::PolicySource;
use countersign_domain::policy_changes::change_request::{PolicyChangeRequest, PolicyChangeState};
use countersign_domain::primitives::id::AmendmentId;
use countersign_domain::reviews::{Ballot, VoteVerdict, VoterRoll};
use countersign_service::error::{Error, Result};
use countersign_service::identity::Identity;
use countersign_service::policies::Policies;
use countersign_service::policy_changes::PolicyChanges;
use similar::{ChangeTag, TextDiff};

use super::change_request_view::{DiffLine, DiffLineKind, FileDiff, PolicyChangePage, SignPolicyPage};
use crate::pages::policies::list::standing;
use crate::pages::reviews::decide::{MissingPasskeySignature, signing, vote_words};
use crate::pages::shared::decision_form::{CommentRequirement, DecideForm, DecideFormView, StageProgressView};
use crate::pages::shared::form::SignedInForm;
use crate::pages::shared::format::{html, lines, moment, see_other, why_not};
use crate::pages::shared::layout::{DigestText, FlashNotice, Tone};
use crate::pages::shared::safe_text::{SafeLine, SafeText};
use crate::pages::shared::visitor::Visitor;
use crate::pages::shared::vote_form::{VoteFields, VoteFormState};
use crate::pages::shared::widgets::TimelineItem;
use crate::state::Capability;

/// Context lines around a change.
const LINES_AROUND: usize = 3;

/// Longer than two policies need. After this time, the diff is coarser but still correct.
const DIFF_TIME_MAX: Duration = Duration::from_millis(300);

/// A policy change request has one stage.
const STAGE: u32 = 0;

/// `GET /amendments/{amendment}`.
pub async fn show(
    policies: Capability<Policies>,
    policy_changes: Capability<PolicyChanges>,
    visitor: Visitor,
    id: web::Path<String>,
) -> Result<PolicyChangePage> {
    let amendment = find(&policy_changes, &id).await?;
    page(&policies, &visitor, &amendment, VoteFormState::default()).await
}

/// Redirects a `GET` of a form's address to the policy change request, for example after a reload.
pub async fn back(id: web::Path<String>) -> HttpResponse {
    let id = AmendmentId::try_from(id.as_str());
    see_other(&id.map_or_else(|_| "/policies".to_owned(), |it| format!("/amendments/{it}")))
}

/// `POST /amendments/{amendment}/decision`.
pub async fn submit(
    policies: Capability<Policies>,
    identity: Capability<Identity>,
    policy_changes: Capability<PolicyChanges>,
    sent: SignedInForm<VoteFields>,
    id: web::Path<String>,
) -> Result<HttpResponse> {
    let (visitor, form) = sent.parts();
    let amendment = find(&policy_changes, &id).await?;
    match decide(&identity, &policy_changes, &visitor, &amendment, &form).await {
        Ok(None) => Ok(see_other(&format!("/amendments/{}", amendment.id))),
        Ok(Some(page)) => Ok(html(StatusCode::OK, page.render())),
        Err(Error::Vote(refused)) => {
            let again = VoteFormState {
                problem: Some(format!("{} Your vote was not counted.", vote_words(&refused))),
                typed: form.comment(),
            };
            // The request may have changed since the form was read, which is a common cause of the refusal.
            let now = find(&policy_changes, &id).await?;
            let page = page(&policies, &visitor, &now, again).await?;
            Ok(html(StatusCode::CONFLICT, page.render()))
        }
        Err(error) => Err(error),
    }
}

async fn find(policy_changes: &PolicyChanges, id: &str) -> Result<PolicyChangeRequest> {
    let id = AmendmentId::try_from(id).map_err(|_| Error::NotFound("policy change request"))?;
    policy_changes.amendment(&id).await
}

/// Counts the vote, or returns the page on which a passkey must sign it.
async fn decide(
    identity: &Identity,
    policy_changes: &PolicyChanges,
    visitor: &Visitor,
    amendment: &PolicyChangeRequest,
    form: &VoteFields,
) -> Result<Option<SignPolicyPage>> {
    let ballot = form.ballot(visitor, amendment.id.as_str())?;
    let voter = &visitor.account().id;
    let signature = form.signature()?;
    let now = visitor.now();
    let met = amendment.jury().passkey_need(STAGE).met_by(&ballot.proof, now).is_ok();
    // The recent use of a passkey can satisfy the stage, and otherwise the person must sign on a page of its own.
    if signature.is_none() && !met {
        return sign(identity, visitor, amendment, &ballot).await.map(Some);
    }
    policy_changes.vote_on_policy_change(voter, &amendment.id, &ballot, signature.as_ref()).await?;
    Ok(None)
}

/// Builds the page on which a passkey signs the vote. A vote that would be rejected is rejected here, by the same
/// rules.
async fn sign(
    identity: &Identity,
    visitor: &Visitor,
    amendment: &PolicyChangeRequest,
    ballot: &Ballot,
) -> Result<SignPolicyPage> {
    let voter = visitor.account();
    let roll = VoterRoll { people: vec![voter.clone()], delegations: Vec::new(), now: visitor.now() };
    // The vote is tried on a copy first, so that a person does not sign a vote that would be refused.
    amendment.clone().vote(ballot.clone(), voter, &roll)?;
    let asked = || identity.vote_challenge(amendment, &voter.id, ballot);
    Ok(SignPolicyPage {
        shell: visitor.shell(None).await?,
        amendment_url: format!("/amendments/{}", amendment.id),
        action: format!("/amendments/{}/decision", amendment.id),
        csrf: visitor.0.csrf.shown(),
        digest: DigestText::new(ballot.transition.to_string()),
        stage: ballot.stage,
        nonce: ballot.nonce.clone(),
        verdict: ballot.verdict.into(),
        flow: SafeLine::new(amendment.change.flow.as_str()),
        policy: DigestText::new(amendment.change.policy.to_string()),
        deadline: moment(amendment.expires_at, visitor.now()),
        comment: SafeText::new(ballot.comment.clone().unwrap_or_default()),
        signing: signing(identity, &voter.id, Some(MissingPasskeySignature), asked).await?,
    })
}

async fn page(
    policies: &Policies,
    visitor: &Visitor,
    amendment: &PolicyChangeRequest,
    again: VoteFormState,
) -> Result<PolicyChangePage> {
    let change = &amendment.change;
    let now = visitor.now();
    // The comparison is with the policy that the request names, because another one may be active by now.
    let old = policies.policy_source(change.over.policy).await?;
    let new = policies.policy_source(change.policy).await?;
    let notice = again.problem.clone().map(|words| FlashNotice { tone: Tone::Bad, words });
    let (words, tone) = standing(amendment, now);
    Ok(PolicyChangePage {
        shell: visitor.shell(notice).await?,
        flow: SafeLine::new(change.flow.as_str()),
        words,
        tone,
        is_open: amendment.is_open(now),
        standing: explained(amendment, amendment.is_open(now)),
        proposer: SafeLine::new(amendment.proposer.as_str()),
        deadline: moment(amendment.expires_at, now),
        digest: DigestText::new(amendment.digest.to_string()),
        policy: DigestText::new(change.policy.to_string()),
        over: DigestText::new(change.over.policy.to_string()),
        accepts: change.accepts.iter().map(|it| DigestText::new(it.to_string())).collect(),
        files: differences(&old, &new),
        text: new.text.lines().map(SafeLine::new).collect(),
        stages: seats(amendment),
        timeline: timeline(amendment, now),
        deciding: deciding(visitor, amendment, again.typed)?,
    })
}

fn deciding(visitor: &Visitor, amendment: &PolicyChangeRequest, typed: String) -> Result<DecideFormView> {
    if !amendment.is_open(visitor.now()) {
        return Ok(DecideFormView::Closed("The request has ended. It can no longer be decided.".to_owned()));
    }
    if let Err(reason) = amendment.jury().eligible(visitor.account()) {
        return Ok(DecideFormView::Closed(format!("You cannot decide this. {}", why_not(reason).0)));
    }
    let required = amendment.stages.iter().any(|it| it.comment_required);
    Ok(DecideFormView::Open(DecideForm {
        action: format!("/amendments/{}/decision", amendment.id),
        csrf: visitor.0.csrf.shown(),
        nonce: visitor.nonce(amendment.id.as_str(), amendment.digest, STAGE)?,
        comment: if required { CommentRequirement::Required } else { CommentRequirement::Optional },
        stage: STAGE,
        asks: false,
        typed: SafeText::new(typed),
    }))
}

fn explained(amendment: &PolicyChangeRequest, open: bool) -> String {
    match &amendment.state {
        PolicyChangeState::Open {} if open => {
            "Until approval, the current policy stays active. After approval, the new policy judges the pending \
             reviews again."
        }
        PolicyChangeState::Open {} | PolicyChangeState::Expired { .. } => {
            "No decision was made before the deadline. The old policy stays active."
        }
        PolicyChangeState::Activated { .. } => "It was approved, and its policy was activated.",
        PolicyChangeState::Denied { .. } => "It was denied. The old policy stays active.",
        PolicyChangeState::Cancelled { .. } => "It was cancelled. The old policy stays active.",
        PolicyChangeState::Superseded { .. } => {
            "Another policy was activated, so this request no longer replaces the active policy."
        }
    }
    .to_owned()
}

fn seats(amendment: &PolicyChangeRequest) -> Vec<StageProgressView> {
    let seats = |(index, stage): (u32, &countersign_domain::reviews::ApprovalStage)| StageProgressView {
        groups: lines(stage.groups.iter().map(|it| it.as_str())),
        need: stage.need,
        approved_by: lines(
            amendment
                .votes
                .iter()
                .filter(|it| it.stage == index && it.verdict == VoteVerdict::Approve)
                .map(|it| it.name.as_str()),
        ),
    };
    (0u32..).zip(&amendment.stages).map(seats).collect()
}

fn timeline(
    amendment: &PolicyChangeRequest,
    now: countersign_domain::primitives::time::Timestamp,
) -> Vec<TimelineItem> {
    let item = |who: Option<&str>, words: &str, tone, at| TimelineItem {
        who: who.map(SafeLine::new),
        words: words.to_owned(),
        comment: None,
        claim: None,
        tone,
        at: moment(at, now),
    };
    let mut items = vec![item(Some(amendment.proposer.as_str()), "proposed it", Tone::Plain, amendment.opened_at)];
    for vote in &amendment.votes {
        let (words, tone) = match vote.verdict {
            VoteVerdict::Approve => ("approved it", Tone::Good),
            VoteVerdict::Deny => ("denied it", Tone::Bad),
        };
        let comment = vote.comment.as_deref().map(SafeText::new);
        items.push(TimelineItem { comment, ..item(Some(&vote.name), words, tone, vote.at) });
    }
    match &amendment.state {
        // A denial is already in the timeline as the vote that ended the request.
        PolicyChangeState::Open {} | PolicyChangeState::Denied { .. } => {}
        PolicyChangeState::Activated { at } => items.push(item(None, "The gateway activated it", Tone::Good, *at)),
        PolicyChangeState::Expired { at } => {
            items.push(item(None, "The deadline passed without a decision", Tone::Plain, *at));
        }
        PolicyChangeState::Cancelled { at, by, reason } => items.push(TimelineItem {
            comment: Some(SafeText::new(reason.as_str())),
            ..item(Some(by.as_str()), "cancelled it", Tone::Plain, *at)
        }),
        PolicyChangeState::Superseded { at } => {
            items.push(item(None, "Another policy was activated", Tone::Plain, *at));
        }
    }
    items
}

/// Returns the differences between two policies: first the policy text, then the schemas by name.
fn differences(old: &PolicySource, new: &PolicySource) -> Vec<FileDiff> {
    let names: BTreeSet<&String> = old.schemas.keys().chain(new.schemas.keys()).collect();
    let mut files = vec![("policy".to_owned(), Some(old.text.as_str()), Some(new.text.as_str()))];
    files.extend(names.into_iter().map(|name| {
        let (old, new) = (old.schemas.get(name), new.schemas.get(name));
        (format!("schema {name}"), old.map(String::as_str), new.map(String::as_str))
    }));
    files.retain(|(_, old, new)| old != new);
    // The files share the time limit, so that many schemas do not take longer than one policy.
    let time = DIFF_TIME_MAX / u32::try_from(files.len().max(1)).unwrap_or(u32::MAX);
    files.into_iter().map(|(name, old, new)| difference(name, old, new, time)).collect()
}

fn difference(name: String, old: Option<&str>, new: Option<&str>, time: Duration) -> FileDiff {
    let name = match (old, new) {
        (None, _) => format!("{name} (new)"),
        (_, None) => format!("{name} (removed)"),
        _ => name,
    };
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let diff = TextDiff::configure().timeout(time).diff_lines(old, new);
    let line = |change: similar::Change<&str>| DiffLine {
        fate: match change.tag() {
            ChangeTag::Equal => DiffLineKind::Kept,
            ChangeTag::Insert => DiffLineKind::Added,
            ChangeTag::Delete => DiffLineKind::Removed,
        },
        // Only the plain line end is removed, so that a changed line end is visible.
        text: SafeLine::new(change.value().strip_suffix('\n').unwrap_or(change.value())),
    };
    let hunk = |ops: &Vec<similar::DiffOp>| ops.iter().flat_map(|op| diff.iter_changes(op)).map(line).collect();
    FileDiff { name: SafeLine::new(name), hunks: diff.grouped_ops(LINES_AROUND).iter().map(hunk).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str, schemas: &[(&str, &str)]) -> PolicySource {
        let schemas = schemas.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        PolicySource { text: text.to_owned(), schemas }
    }

    fn shown(files: &[FileDiff]) -> Vec<String> {
        let lines = |file: &FileDiff| {
            let all = file.hunks.concat();
            all.iter()
                .map(|it| format!("{}{}{}", file.name.plain(), it.fate.sign(), it.text.plain()))
                .collect::<Vec<_>>()
        };
        files.iter().flat_map(lines).filter(|it| !it.contains("policy ")).collect()
    }

    #[test]
    fn a_difference_shows_what_goes_and_what_comes_in_text_and_schemas() {
        let old = source("a\nb\nc\n", &[("s.json", "{}"), ("gone.json", "{\"x\": 1}")]);
        let new = source("a\nB\nc\n", &[("s.json", "{}"), ("new.json", "{}")]);
        let shown = shown(&differences(&old, &new));
        let schemas = ["schema gone.json (removed)-{\"x\": 1}", "schema new.json (new)+{}"];
        assert_eq!(shown, ["policy-b", "policy+B", schemas[0], schemas[1]]);
    }

    #[test]
    fn a_schema_that_is_new_and_empty_is_a_change_and_none_passes_for_the_policy() {
        let files = differences(&source("a", &[]), &source("a", &[("policy", "")]));
        assert_eq!(files.iter().map(|it| it.name.plain()).collect::<Vec<_>>(), ["schema policy (new)"]);
    }

    #[test]
    fn letters_that_look_alike_are_flagged_where_a_line_changes() {
        let files = differences(&source("pay\nx", &[]), &source("p\u{430}y\nx", &[]));
        let flagged: Vec<_> = files[0].hunks.concat().iter().map(|it| it.flags().len()).collect();
        assert_eq!(flagged, [0, 1, 0]);
        let whole = differences(&source("cop", &[]), &source("\u{441}\u{43e}\u{440}", &[]));
        assert!(whole[0].hunks.concat().iter().any(|it| !it.flags().is_empty()));
    }

    #[test]
    fn a_line_end_that_changed_is_a_change() {
        let files = differences(&source("a\nb", &[]), &source("a\r\nb", &[]));
        let lines = files[0].hunks.concat();
        assert!(lines.iter().any(|it| it.text.plain().contains("U+000D")), "{lines:?}");
    }
}
