//! Formats the result of an export audit.

use std::fmt::Write as _;

use countersign_domain::chain::verify_export::ChangeVisibility;
use countersign_domain::primitives::id::ThreadId;
use countersign_domain::primitives::sanitize::printed_line;
use serde_json::{Value, json as told};

use super::files::TrustedKeys;
use super::{AuditedExport, CheckedChain, ExportFinding};

/// Returns a line for each thread and for each problem.
pub fn text(audited: &AuditedExport, keys: &TrustedKeys) -> String {
    let mut lines = vec![format!("trusted: the keys in {}{}", keys.place, issuer_suffix(keys))];
    lines.extend(audited.chains.iter().map(|(thread, it)| line(thread, it)));
    let each = |what: &'static str, of: &[String]| of.iter().map(move |it| format!("{what}: {it}")).collect::<Vec<_>>();
    lines.extend(each("not here", &audited.unseen));
    lines.extend(each("passed over", &audited.passed_over));
    lines.extend(each("could not tell", &audited.doubts));
    lines.extend(audited.findings.iter().map(|ExportFinding { place, version, broken }| {
        let version = version.map(|it| format!(" version {it}:")).unwrap_or_default();
        format!("{place}:{version} {broken}")
    }));
    lines.push(match (audited.findings.len(), audited.doubts.is_empty()) {
        // Files prove nothing about files that are missing, so the verdict names this limit.
        (0, true) => "no problems found in these files. Other versions and threads can exist".to_owned(),
        (0, false) => "could not tell".to_owned(),
        (1, _) => "1 finding".to_owned(),
        (many, _) => format!("{many} findings"),
    });
    // File names and issuers are untrusted, so the lines are sanitized.
    lines.iter().map(|it| printed_line(it)).collect::<Vec<_>>().join("\n")
}

fn issuer_suffix(keys: &TrustedKeys) -> String {
    keys.believed.issuer().map(|it| format!(", of {it}")).unwrap_or_default()
}

fn line(thread: &ThreadId, CheckedChain { chain, receipts, .. }: &CheckedChain) -> String {
    let (from, to, issuer) = (chain.first(), chain.next_version() - 1, &chain.issuer);
    let mut line = format!("{thread} of {issuer}: versions {from} to {to} linked and signed");
    let seen = |it| chain.seen(it);
    let (whole, partly, nothing) =
        (seen(ChangeVisibility::Whole), seen(ChangeVisibility::Partly), seen(ChangeVisibility::Nothing));
    write!(line, "; changes: {whole} complete, {partly} partly redacted, {nothing} not visible").expect("text grows");
    let (written, approved, here) = (chain.written(), chain.approved(), receipts.len());
    write!(line, "; {written} written; {approved} approved, {here} of them with a receipt in the export")
        .expect("text grows");
    line
}

/// Returns the result as JSON.
pub fn json(audited: &AuditedExport, keys: &TrustedKeys) -> Value {
    let thread = |(thread, CheckedChain { chain, receipts, is_whole }): (&ThreadId, &CheckedChain)| {
        told!({
            "thread": thread, "issuer": chain.issuer, "from": chain.first(), "to": chain.next_version() - 1,
            "last": is_whole, "written": chain.written(), "approved": chain.approved(), "receipts": receipts.len(),
            "changes": {"whole": chain.seen(ChangeVisibility::Whole), "partly": chain.seen(ChangeVisibility::Partly), "not_seen": chain.seen(ChangeVisibility::Nothing)},
        })
    };
    let finding = |it: &ExportFinding| told!({"place": it.place, "version": it.version, "code": it.broken.code, "detail": it.broken.what});
    told!({
        "sound": audited.findings.is_empty() && audited.doubts.is_empty(),
        "keys": {"place": keys.place, "issuer": keys.believed.issuer()},
        "threads": audited.chains.iter().map(thread).collect::<Vec<_>>(),
        "findings": audited.findings.iter().map(finding).collect::<Vec<_>>(),
        "could_not_tell": audited.doubts, "not_seen": audited.unseen, "passed_over": audited.passed_over,
    })
}
