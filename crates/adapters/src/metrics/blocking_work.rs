//! The kinds of work that the gateway runs off the threads that answer requests.

/// Slow work that runs outside of the threads that answer requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockingWork {
    /// The policy evaluation of a large proposal.
    Judgement,
    /// A policy evaluation without effect (dry run).
    DryRun,
    /// The compilation of an uploaded policy.
    Policy,
    /// The verification of an imported episode.
    Import,
    /// The verification of a large state of an earlier version.
    State,
    /// A step on the way back to the author of a leaf.
    Trace,
    /// The redaction of large states for a reader, or of a rejected request on a large state.
    Redaction,
}

impl BlockingWork {
    pub(super) const ALL: [Self; 7] =
        [Self::Judgement, Self::DryRun, Self::Policy, Self::Import, Self::State, Self::Trace, Self::Redaction];

    /// Returns the value of the label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Judgement => "judgement",
            Self::DryRun => "dry_run",
            Self::Policy => "policy",
            Self::Import => "import",
            Self::State => "state",
            Self::Trace => "trace",
            Self::Redaction => "redaction",
        }
    }
}
