//! Rows of findings about the set-up of a flow.

use countersign_domain::operations::finding::{FindingSeverity, SetupFinding};

use super::layout::Tone;
use super::safe_text::SafeLine;

/// A problem with its remedy.
#[derive(Clone, Debug)]
pub struct FindingRow {
    /// "Problem" or "Warning".
    pub word: &'static str,
    pub tone: Tone,
    pub detail: SafeLine,
    pub remedy: SafeLine,
}

impl From<&SetupFinding> for FindingRow {
    fn from(finding: &SetupFinding) -> Self {
        let (word, tone) = match finding.severity {
            FindingSeverity::Problem => ("Problem", Tone::Bad),
            FindingSeverity::Warning => ("Warning", Tone::Care),
        };
        let (detail, remedy) = (SafeLine::new(finding.detail.as_str()), SafeLine::new(finding.remedy.as_str()));
        Self { word, tone, detail, remedy }
    }
}
