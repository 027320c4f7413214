//! What would change, and what it is signed with.

use std::borrow::Cow;
use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::domain::chain::opening::Opening;
use crate::domain::chain::statement::Statement;
use crate::domain::json::canonical::canonical;
use crate::domain::policy::{RedactedLeaf, Warning};
use crate::domain::reviews::HoldReason;
use crate::domain::threads::usage::Usage;
use crate::service::error::{Error, Result};
use crate::service::reviews::details::{ReviewFacts, WriterView};
use crate::service::threads::tool_call_view as service;
use crate::web::pages::reviews::review_view::{Fact, Proof, Rationale};
use crate::web::pages::shared::diff_rows;
use crate::web::pages::shared::diff_rows::named;
use crate::web::pages::shared::format::{HEADLINE_CHANGES, intent, pattern_of, place};
use crate::web::pages::shared::headline::{HeadChange, Headline, Intent};
use crate::web::pages::shared::layout::Hash;
use crate::web::pages::shared::proof_rows::WriterReads;
use crate::web::pages::shared::proof_rows::{ReadRow, Row, Rows};
use crate::web::pages::shared::safe_text::{Json, Line, Path, Prose};
use crate::web::pages::shared::widgets::{Argument, Arguments, Call, Reason};

/// The change in all its places on the page.
pub struct Shown {
    pub headline: Headline,
    pub rows: Rows,
    pub writers: Vec<WriterReads>,
}

/// Reads the rows from the opening, which is closed at everything hidden already: nothing else of the states
/// reaches the page, but for the one value that is revealed to its reader. The sentence, which a browser keeps as the
/// page's title, is made without that one.
pub fn read(facts: &ReviewFacts) -> Result<Shown> {
    let closed = rows(facts, &facts.opening)?;
    let headline = headline(facts, &closed.changed);
    let mut rows = match &facts.revealed {
        Some((_, opening)) => rows(facts, opening)?,
        None => closed,
    };
    let writers: Vec<WriterReads> = facts.writers.iter().map(|it| writer(facts, &rows, it)).collect();
    rows.leave_out(&writers);
    Ok(Shown { headline, rows, writers })
}

fn rows(facts: &ReviewFacts, opening: &Opening) -> Result<Rows> {
    let mut rows = diff_rows::rows(opening, (&facts.diff, &facts.hidden), &|at| facts.policy.protected().touches(at))?;
    rows.compare(&|at| facts.known.at(&named(at)?));
    Ok(rows)
}

/// What one writer will read: every leaf that it will find, and what it would have found and is gone.
fn writer(facts: &ReviewFacts, rows: &Rows, view: &WriterView) -> WriterReads {
    let finds: BTreeSet<&str> = view.leaves.iter().map(leaf_place).collect();
    let changed: BTreeSet<&str> = view.changed_since_write.iter().map(|it| place(it).as_str()).collect();
    let reads = |at: &str| {
        let rules = facts.policy.node(&view.node);
        finds.contains(at) || named(at).zip(rules).is_some_and(|(at, rules)| rules.reads().covers(&at))
    };
    let rows: Vec<ReadRow> = rows.reads(&reads, &|at| changed.contains(at));
    WriterReads { node: Line::new(view.node.as_str()), rows }
}

fn leaf_place(leaf: &RedactedLeaf) -> &str {
    match leaf {
        RedactedLeaf::Hidden { pointer } | RedactedLeaf::Shown { pointer, .. } => pointer.as_str(),
    }
}

/// The name of who rewrote what the agent asked for.
pub fn editor_of(facts: &ReviewFacts) -> Option<&str> {
    let editor = facts.transition.editor.as_ref()?;
    facts.roll.person(editor).map(|it| it.name.as_str())
}

/// The sentence. What was only set again is not in it unless there is nothing else.
fn headline(facts: &ReviewFacts, rows: &[Row]) -> Headline {
    let differing = rows.iter().take_while(|it| !it.is_set_again()).count();
    let told = if differing == 0 { rows } else { &rows[..differing] };
    let change =
        |row: &Row| HeadChange { path: row.path.clone(), before: row.before.clone(), after: row.after.clone() };
    Headline {
        node: Line::new(facts.hold.node.as_str()),
        intent: match (intent(&facts.transition), editor_of(facts)) {
            (Intent::Edit { .. }, Some(by)) => Intent::Edit { by: Line::new(by) },
            (intent, _) => intent,
        },
        changes: told.iter().take(HEADLINE_CHANGES).map(change).collect(),
        more: rows.len().saturating_sub(told.len().min(HEADLINE_CHANGES)),
    }
}

/// Why it was held, in the policy's words.
pub fn reasons(reasons: &[HoldReason]) -> Vec<Reason> {
    let reason = |it: &HoldReason| {
        let pattern = pattern_of(it);
        let words = pattern.as_ref().and_then(|pattern| it.text.strip_prefix(&format!("{pattern} ")));
        match (pattern.as_ref().and_then(|it| it.pointer()), words) {
            (Some(at), Some(words)) => Reason { path: Some(Path::new(at.to_string())), words: Line::new(words) },
            _ => Reason { path: None, words: Line::new(it.text.as_str()) },
        }
    };
    reasons.iter().map(reason).collect()
}

/// What rules warn of, each in its author's words.
pub fn warnings(warnings: &[Warning]) -> Vec<Reason> {
    let told = |it: &Warning| Reason {
        path: (!it.pointer.is_root()).then(|| Path::new(it.pointer.to_string())),
        words: Line::new(it.detail.as_str()),
    };
    warnings.iter().map(told).collect()
}

/// The tool that is called along with it.
pub fn call(call: &service::Call) -> Call {
    let part = |leaf: &RedactedLeaf| match leaf {
        RedactedLeaf::Hidden { pointer } => Argument { path: Path::new(pointer.to_string()), value: None },
        RedactedLeaf::Shown { pointer, value } => {
            Argument { path: Path::new(pointer.to_string()), value: Some(Json::new(canonical(value))) }
        }
    };
    let arguments = match &call.arguments {
        service::Arguments::Whole { value, salt } => {
            Arguments::Whole { value: Json::new(canonical(value)), salt: URL_SAFE_NO_PAD.encode(salt) }
        }
        service::Arguments::Parts(parts) => Arguments::Parts(parts.iter().map(part).collect()),
    };
    Call { name: Line::new(call.name.as_str()), arguments }
}

/// What the agent says it used.
pub fn usage(statement: &Statement) -> Option<Line> {
    let usage = Usage::read(statement.usage.as_ref()?).ok()?;
    let tokens = usage.tokens.map(|it| format!("{it} tokens"));
    let cost = usage.cost.map(|it| format!("a cost of {}", it.text()));
    let told: Vec<String> = tokens.into_iter().chain(cost).collect();
    Some(Line::new(told.join(" and ")))
}

/// What the agent says, without what is hidden.
pub fn rationale(facts: &ReviewFacts, text: &str) -> Rationale {
    match facts.proposed(text) {
        Cow::Borrowed(whole) => Rationale::Whole(Prose::new(whole)),
        Cow::Owned(masked) => Rationale::Redacted(Prose::new(masked)),
    }
}

/// What is signed, member by member.
pub fn proof(facts: &ReviewFacts) -> Result<Proof> {
    let statement = serde_json::to_value(&facts.transition.statement).map_err(|_| Error::Broken("a statement"))?;
    let Value::Object(members) = statement else { return Err(Error::Broken("a statement")) };
    let fact = |(key, value): (&String, &Value)| Fact { key: key.clone(), value: Json::new(canonical(value)) };
    Ok(Proof {
        digest: Hash::new(facts.transition.digest.to_string()),
        statement: members.iter().map(fact).collect(),
        policy: Line::new(facts.hold.flow.as_str()),
    })
}
