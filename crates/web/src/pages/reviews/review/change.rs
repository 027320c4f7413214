//! The change, the values for each writer, and the signed statement of a review.

use std::borrow::Cow;
use std::collections::BTreeSet;

use countersign_domain::chain::opening::Opening;
use countersign_domain::chain::statement::Statement;
use countersign_domain::json::canonical::canonical;
use countersign_domain::policy::{JudgedWarning, RedactedLeaf};
use countersign_domain::reviews::HoldReason;
use countersign_domain::threads::usage::Usage;
use countersign_service::error::{Error, Result};
use countersign_service::reviews::details::{ReviewFacts, WriterView};
use serde_json::Value;

use crate::pages::reviews::review_view::{Rationale, StatementProofView, StatementRow};
use crate::pages::shared::diff_rows;
use crate::pages::shared::diff_rows::named;
use crate::pages::shared::format::span;
use crate::pages::shared::format::{HEADLINE_CHANGES, intent, pattern_of, place};
use crate::pages::shared::headline::{Headline, HeadlineChange, HeadlineKind};
use crate::pages::shared::layout::DigestText;
use crate::pages::shared::proof_rows::WriterReads;
use crate::pages::shared::proof_rows::{OpeningRow, OpeningRows, ReadRow};
use crate::pages::shared::safe_text::{SafeJson, SafeLine, SafePath, SafeText};
use crate::pages::shared::tool_call::ToolCallMention;
use crate::pages::shared::widgets::HoldReasonView;

/// The change in each section of the page.
pub struct ChangeSection {
    pub headline: Headline,
    pub rows: OpeningRows,
    pub writers: Vec<WriterReads>,
}

/// Reads the rows from the opening, in which every redacted value is closed already. No other part of the states
/// reaches the page, except the one value that is revealed to the reader. The headline does not contain that value,
/// because browsers store it as the page title.
pub fn read(facts: &ReviewFacts) -> Result<ChangeSection> {
    let closed = rows(facts, &facts.opening)?;
    // The headline never shows a revealed value, so it is built before the rows with that value.
    let headline = headline(facts, &closed.changed);
    let mut rows = match &facts.revealed {
        Some((_, opening)) => rows(facts, opening)?,
        None => closed,
    };
    // The instance of an approval request runs the call and reads no state.
    let reading = facts.writers.iter().filter(|_| facts.thread.request.is_none());
    let writers: Vec<WriterReads> = reading.map(|it| writer(facts, &rows, it)).collect();
    rows.leave_out(&writers);
    Ok(ChangeSection { headline, rows, writers })
}

/// Returns the time after an approval in which the instance of an approval request may run its call.
pub fn run_within(facts: &ReviewFacts) -> Option<String> {
    facts.thread.request.as_ref().map(|_| span(facts.policy.approval().receipt_ttl().as_secs()))
}

fn rows(facts: &ReviewFacts, opening: &Opening) -> Result<OpeningRows> {
    let mut rows = diff_rows::rows(opening, &facts.hidden, &|at| facts.policy.protected().touches(at))?;
    rows.compare(&|at| facts.known.at(&named(at)?));
    Ok(rows)
}

/// Returns the values that one writer will read, including values that the change removes.
fn writer(facts: &ReviewFacts, rows: &OpeningRows, view: &WriterView) -> WriterReads {
    let finds: BTreeSet<&str> = view.leaves.iter().map(leaf_place).collect();
    let changed: BTreeSet<&str> = view.changed_since_write.iter().map(|it| place(it).as_str()).collect();
    let reads = |at: &str| {
        let rules = facts.policy.node(&view.node);
        finds.contains(at) || named(at).zip(rules).is_some_and(|(at, rules)| rules.reads().covers(&at))
    };
    let rows: Vec<ReadRow> = rows.reads(&reads, &|at| changed.contains(at));
    WriterReads { node: SafeLine::new(view.node.as_str()), rows }
}

fn leaf_place(leaf: &RedactedLeaf) -> &str {
    match leaf {
        RedactedLeaf::Hidden { pointer } | RedactedLeaf::Shown { pointer, .. } => pointer.as_str(),
    }
}

/// Returns the name of the reviewer who edited the proposal.
pub fn editor_of(facts: &ReviewFacts) -> Option<&str> {
    let editor = facts.transition.editor.as_ref()?;
    facts.roll.person(editor).map(|it| it.name.as_str())
}

/// Builds the headline. It leaves out values that were only set again, unless there are no others.
fn headline(facts: &ReviewFacts, rows: &[OpeningRow]) -> Headline {
    let differing = rows.iter().take_while(|it| !it.is_set_again()).count();
    let told = if differing == 0 { rows } else { &rows[..differing] };
    let change = |row: &OpeningRow| HeadlineChange {
        path: row.path.clone(),
        before: row.before.clone(),
        after: row.after.clone(),
    };
    Headline {
        node: SafeLine::new(facts.hold.node.as_str()),
        intent: match (intent(&facts.transition), editor_of(facts)) {
            (HeadlineKind::Edit { .. }, Some(by)) => HeadlineKind::Edit { by: SafeLine::new(by) },
            (intent, _) => intent,
        },
        call: facts.call.as_ref().map(ToolCallMention::of),
        changes: told.iter().take(HEADLINE_CHANGES).map(change).collect(),
        more: rows.len().saturating_sub(told.len().min(HEADLINE_CHANGES)),
    }
}

/// Returns the reasons of the policy for the pending review.
pub fn reasons(reasons: &[HoldReason]) -> Vec<HoldReasonView> {
    let reason = |it: &HoldReason| {
        let pattern = pattern_of(it);
        let text = it.in_current_wording().text;
        let words = pattern.as_ref().and_then(|pattern| text.strip_prefix(&format!("`{pattern}` ")));
        match (pattern.as_ref().and_then(|it| it.pointer()), words) {
            (Some(at), Some(words)) => {
                HoldReasonView { path: Some(SafePath::new(at.to_string())), words: SafeLine::new(words) }
            }
            _ => HoldReasonView { path: None, words: SafeLine::new(text.as_str()) },
        }
    };
    reasons.iter().map(reason).collect()
}

/// Returns the warnings of rules, in the words of the policy author.
pub fn warnings(warnings: &[JudgedWarning]) -> Vec<HoldReasonView> {
    let told = |it: &JudgedWarning| HoldReasonView {
        path: (!it.pointer.is_root()).then(|| SafePath::new(it.pointer.to_string())),
        words: SafeLine::new(it.detail.as_str()),
    };
    warnings.iter().map(told).collect()
}

/// Returns the usage that the agent reports.
pub fn usage(statement: &Statement) -> Option<SafeLine> {
    let usage = Usage::read(statement.usage.as_ref()?).ok()?;
    let tokens = usage.tokens.map(|it| format!("{it} tokens"));
    let cost = usage.cost.map(|it| format!("a cost of {}", it.text()));
    let told: Vec<String> = tokens.into_iter().chain(cost).collect();
    Some(SafeLine::new(told.join(" and ")))
}

/// Returns the rationale of the agent, without redacted values.
pub fn rationale(facts: &ReviewFacts, text: &str) -> Rationale {
    match facts.proposed(text) {
        Cow::Borrowed(whole) => Rationale::Whole(SafeText::new(whole)),
        // The agent's words can quote a redacted value, and the page says that a part is masked.
        Cow::Owned(masked) => Rationale::Redacted(SafeText::new(masked)),
    }
}

/// Returns the members of the signed statement.
pub fn proof(facts: &ReviewFacts) -> Result<StatementProofView> {
    let statement = serde_json::to_value(&facts.transition.statement).map_err(|_| Error::Broken("a statement"))?;
    let Value::Object(members) = statement else { return Err(Error::Broken("a statement")) };
    let fact =
        |(key, value): (&String, &Value)| StatementRow { key: key.clone(), value: SafeJson::new(canonical(value)) };
    Ok(StatementProofView {
        digest: DigestText::new(facts.transition.digest.to_string()),
        statement: members.iter().map(fact).collect(),
        policy: SafeLine::new(facts.hold.flow.as_str()),
    })
}
