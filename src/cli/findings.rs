//! Prints findings about the set-up of a gateway.

use countersign_domain::operations::finding::SetupFinding;

use super::output::CommandOutput;

/// Prints findings to standard error, the worst first.
pub(super) fn warn_of_findings(findings: &[SetupFinding], out: &mut CommandOutput<'_>) {
    for it in findings {
        out.warn(format!("{}: {} {} [{}]", it.severity.as_str(), it.detail, it.remedy, it.code.as_str()));
    }
}
