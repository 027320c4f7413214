//! `policy replay`: evaluates a policy on the recorded proposals of a flow.

use countersign_domain::policy::{HypotheticalOutcome, Policy, RecordedOutcome, ReplayComparison};
use countersign_service::policy_changes::replay::{REPLAYED_MAX, ReplayCursor, ReplayedProposal};
use serde_json::json;

use super::{canonical_ascii, source_of, unsound};
use crate::cli::output::CommandOutput;
use crate::cli::{CliError, CommandExit, args, open_service};
use crate::config::Config;

/// The sum of all pages. Only the listed rows are stored.
#[derive(Default)]
struct ReplayTotals {
    same: usize,
    differs: usize,
    unknown: usize,
    listed: Vec<ReplayedProposal>,
    next: Option<ReplayCursor>,
}

impl ReplayTotals {
    fn add(&mut self, row: ReplayedProposal) {
        match row.compared {
            ReplayComparison::Same { .. } => {
                // Equal results are only counted, because a flow can have very many.
                self.same += 1;
                return;
            }
            ReplayComparison::Differs { .. } => self.differs += 1,
            ReplayComparison::Unknown { .. } => self.unknown += 1,
        }
        self.listed.push(row);
    }

    const fn all(&self) -> usize {
        self.same + self.differs + self.unknown
    }
}

/// Exits with 0 if every result stays the same, 1 if one differs, and 2 if none differs but some are unknown.
pub(super) fn run(
    ask: &args::PolicyReplay,
    config: &Config,
    out: &mut CommandOutput<'_>,
) -> Result<CommandExit, CliError> {
    let source = source_of(&ask.file)?;
    // The policy is compiled first, so that its mistakes are reported even without a database.
    let Ok(policy) = Policy::compile(&source) else { return unsound(&ask.file, out) };
    open_service::need_database(config)?;
    let flow = ask.flow.clone().unwrap_or_else(|| policy.flow().clone());
    let wrong = || CliError::Given("--after must be the position in the last line of an earlier replay".to_owned());
    let after = ask.after.as_deref().map(|it| ReplayCursor::read(it).ok_or_else(wrong)).transpose()?;
    let sum = open_service::with_service(config, |service| async move {
        let mut sum = ReplayTotals { next: after, ..ReplayTotals::default() };
        let limit = usize::try_from(ask.limit).unwrap_or(usize::MAX);
        loop {
            let left = u32::try_from(limit - sum.all()).unwrap_or(REPLAYED_MAX);
            let replay = service
                .policy_changes
                .replay(open_service::principal().as_str(), &flow, &source, sum.next.as_ref(), left.min(REPLAYED_MAX))
                .await?;
            replay.rows.into_iter().for_each(|row| sum.add(row));
            sum.next = replay.next;
            if sum.next.is_none() || sum.all() >= limit {
                return Ok(sum);
            }
        }
    })?;
    let ReplayTotals { same, differs, unknown, .. } = sum;
    let mut text: String = sum.listed.iter().map(|it| line(it) + "\n").collect();
    text.push_str(&format!("{same} the same, {differs} would differ, {unknown} unknown"));
    let next = sum.next.as_ref().map(ReplayCursor::token);
    if let Some(next) = &next {
        text.push_str(&format!("\nmore proposals follow: continue with --after {next}"));
    }
    out.answer(text, || {
        json!({
            "policy": policy.digest(), "same": same, "differs": differs, "unknown": unknown,
            "proposals": sum.listed, "next": next,
        })
    })?;
    // A known difference is more important than an unknown result.
    Ok(match (differs, unknown) {
        (0, 0) => CommandExit::Yes,
        (0, _) => CommandExit::CouldNotTell,
        _ => CommandExit::No,
    })
}

fn line(row: &ReplayedProposal) -> String {
    let (word, became) = match &row.compared {
        ReplayComparison::Same { would_be } => ("same", would(would_be)),
        ReplayComparison::Differs { would_be } => ("differs", would(would_be)),
        ReplayComparison::Unknown { why } => ("unknown", format!("unknown: {}", why.detail())),
    };
    let proposal = row.transition.unwrap_or(row.proposal);
    format!("{word} {} version {} {} {proposal}: {} → {became}", row.thread, row.on_version, row.node, was(&row.was))
}

fn was(was: &RecordedOutcome) -> String {
    let codes: Vec<_> = was.codes.iter().map(String::as_str).collect();
    if codes.is_empty() {
        was.outcome.as_str().to_owned()
    } else {
        format!("{} ({})", was.outcome.as_str(), codes.join(", "))
    }
}

fn would(it: &HypotheticalOutcome) -> String {
    let errors = it.errors.iter().map(|it| {
        let rule =
            it.rule.as_ref().map(|rule| format!(" (rule {})", canonical_ascii(&json!(rule)))).unwrap_or_default();
        format!("{} at {}{rule}: {}", it.code, canonical_ascii(&json!(it.pointer)), it.detail)
    });
    let why: Vec<_> = it.reasons.iter().cloned().chain(errors).collect();
    if why.is_empty() { it.outcome.as_str().to_owned() } else { format!("{}: {}", it.outcome.as_str(), why.join("; ")) }
}
