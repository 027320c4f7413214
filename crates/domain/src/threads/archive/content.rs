//! The content of an archive file. It stores everything that the database had of each version, and stores no value
//! twice.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Archive;
use crate::chain::commitment::Origins;
use crate::chain::hash::Digest;
use crate::chain::opening::Opening;
use crate::chain::statement::Statement;
use crate::chain::verify_export::ExportedVersion;
use crate::json::parse::{DEPTH_CEILING, ParseLimits, parse};
use crate::json::patch::PatchFormat;
use crate::json::pointer::Pointer;
use crate::json::state_delta::Delta;
use crate::policy::JudgedWarning;
use crate::primitives::id::{AccountId, Jti, ReviewId, StepKey, ThreadId};
use crate::reviews::HoldReason;
use crate::threads::join_carryover::JoinCarryover;
use crate::threads::tool_call::Tool;
use crate::threads::transition::{ChainRow, StateContent, StateRow, Transition, TransitionOutcome, ValueLocation};

/// The `countersign` member of every archive file.
const WORD: &str = "archive";
/// The version of the file format.
const EDITION: u32 = 2;

/// The content of one archive file. The data of one version is adjacent because that compresses better.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveContent {
    countersign: String,
    edition: u32,
    thread: ThreadId,
    from: u64,
    to: u64,
    pub entries: Vec<ArchivedVersion>,
    /// Proposals in this range that were not committed. Their rows stay in the database, without values.
    pub ended: Vec<Transition>,
}

/// One archived version: the data of an export, and the other columns of its transition row.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchivedVersion {
    pub version: u64,
    pub transition: Digest,
    pub statement: Statement,
    pub entry: String,
    /// The change. `None` if it is erased, or if the previous state is not in the same file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<Opening>,
    row: ArchivedTransitionRow,
    /// The request and the resulting state. `None` after they are erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<ArchivedRequest>,
}

/// The columns of a transition row that are neither in the statement nor in the entry, without values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchivedTransitionRow {
    identity: Digest,
    format: PatchFormat,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<JudgedWarning>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warnings_cut: Option<Vec<JudgedWarning>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<StepKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    carried: Option<Box<JoinCarryover>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    editor: Option<AccountId>,
    outcome: ArchivedOutcome,
}

/// How a transition entered the chain: its outcome without the entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case", deny_unknown_fields)]
enum ArchivedOutcome {
    Committed {},
    Observed { would_hold: Vec<HoldReason> },
    Approved { review: ReviewId, receipt: Jti },
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchivedRequest {
    patch: Value,
    delta: Delta,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    named: BTreeSet<Pointer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rationale: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<Tool>,
    state: ArchivedState,
}

/// A state row without the data that its transition already has.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum ArchivedState {
    Full { state: Value, origins: Origins },
    Delta { base: u64 },
}

impl ArchivedOutcome {
    fn of(outcome: &TransitionOutcome) -> Option<Self> {
        match outcome {
            TransitionOutcome::Committed { .. } => Some(Self::Committed {}),
            TransitionOutcome::Observed { would_hold, .. } => Some(Self::Observed { would_hold: would_hold.clone() }),
            TransitionOutcome::Approved { review, receipt, .. } => {
                Some(Self::Approved { review: review.clone(), receipt: receipt.clone() })
            }
            // These transitions have no version, so no archive contains them as one.
            TransitionOutcome::Held { .. } | TransitionOutcome::Ended { .. } => None,
        }
    }

    fn with(self, entry: String) -> TransitionOutcome {
        match self {
            Self::Committed {} => TransitionOutcome::Committed { entry },
            Self::Observed { would_hold } => TransitionOutcome::Observed { entry, would_hold },
            Self::Approved { review, receipt } => TransitionOutcome::Approved { review, receipt, entry },
        }
    }
}

impl ArchivedVersion {
    /// Returns the archived form of a version. Returns `None` if its rows contradict each other.
    pub fn new(link: &ChainRow, transition: &Transition, state: &StateRow, opening: Option<Opening>) -> Option<Self> {
        let of = transition.clone();
        let kept = match &state.content {
            StateContent::Full { state, origins } => {
                ArchivedState::Full { state: state.clone(), origins: origins.clone() }
            }
            StateContent::Delta { base, .. } => ArchivedState::Delta { base: *base },
        };
        let row = ArchivedTransitionRow {
            identity: of.identity,
            format: of.format,
            warnings: of.warnings,
            warnings_cut: of.warnings_cut,
            step: of.step,
            carried: of.carried,
            context_tokens: of.context_tokens,
            editor: of.editor,
            outcome: ArchivedOutcome::of(&of.outcome)?,
        };
        let values = ArchivedRequest {
            patch: of.patch,
            delta: of.delta,
            named: of.named,
            rationale: of.rationale,
            tool: of.tool,
            state: kept,
        };
        let archived = Self {
            version: link.version,
            transition: link.transition,
            statement: of.statement,
            entry: link.entry.clone(),
            opening,
            row,
            values: Some(values),
        };
        // The rows are rebuilt and compared before they are deleted, so an archive never loses a column.
        let same =
            archived.link() == *link && archived.row() == *transition && archived.state().as_ref() == Some(state);
        same.then_some(archived)
    }

    /// Restores the transition row. Values are absent if they are erased.
    pub fn row(&self) -> Transition {
        let Self { transition, statement, entry, row, values, .. } = self.clone();
        // Without values the row looks like the row that the database stores after archiving.
        let kept = if values.is_some() { ValueLocation::Here } else { ValueLocation::Archived };
        let (patch, delta, named, rationale, tool) = match values {
            Some(it) => (it.patch, it.delta, it.named, it.rationale, it.tool),
            None => Default::default(),
        };
        Transition {
            digest: transition,
            identity: row.identity,
            statement,
            format: row.format,
            patch,
            delta,
            named,
            rationale,
            tool,
            warnings: row.warnings,
            warnings_cut: row.warnings_cut,
            step: row.step,
            carried: row.carried,
            context_tokens: row.context_tokens,
            editor: row.editor,
            outcome: row.outcome.with(entry),
            values: kept,
        }
    }

    /// Restores the state row, if it is not erased.
    pub fn state(&self) -> Option<StateRow> {
        let ArchivedRequest { delta, named, state, .. } = self.values.as_ref()?;
        let statement = &self.statement;
        let content = match state {
            ArchivedState::Full { state, origins } => {
                StateContent::Full { state: state.clone(), origins: origins.clone() }
            }
            ArchivedState::Delta { base } => StateContent::Delta {
                base: *base,
                proposal: statement.proposal.clone(),
                delta: delta.clone(),
                named: named.clone(),
            },
        };
        Some(StateRow { thread: statement.thread.clone(), version: self.version, content })
    }

    /// Restores the chain row.
    pub fn link(&self) -> ChainRow {
        let Self { version, transition, statement, entry, .. } = self;
        ChainRow { thread: statement.thread.clone(), version: *version, transition: *transition, entry: entry.clone() }
    }

    /// Returns the form that the verification of a chain reads.
    pub const fn exhibit(&self) -> ExportedVersion<'_> {
        let Self { version, transition, statement, entry, opening, .. } = self;
        let (version, transition) = (*version, *transition);
        ExportedVersion { version, transition, statement, entry: entry.as_str(), opening: opening.as_ref() }
    }

    fn without_values(&self) -> Self {
        // The opening contains values too.
        Self { opening: None, values: None, ..self.clone() }
    }
}

impl ArchiveContent {
    /// Returns the content for these versions, or `None` without any version.
    pub fn new(thread: &ThreadId, entries: Vec<ArchivedVersion>, ended: Vec<Transition>) -> Option<Self> {
        let (from, to) = (entries.first()?.version, entries.last()?.version);
        let (countersign, thread) = (WORD.to_owned(), thread.clone());
        Some(Self { countersign, edition: EDITION, thread, from, to, entries, ended })
    }

    /// Serializes the content. Equal contents have equal texts.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("plain structs with text keys")
    }

    /// Parses the text of a file. Returns `None` if the content is inconsistent.
    pub fn read(text: &str) -> Option<Self> {
        // The caller has limited the text already, so its own length is the limit here.
        let limits = ParseLimits { bytes_max: text.len(), depth_max: DEPTH_CEILING };
        let content: Self = serde_json::from_value(parse(text.as_bytes(), &limits).ok()?).ok()?;
        // A file comes from outside the database, so its parts are compared before they are used.
        content.is_whole().then_some(content)
    }

    fn is_whole(&self) -> bool {
        (self.countersign.as_str(), self.edition) == (WORD, EDITION)
            && !self.entries.is_empty()
            // A gap or a repetition would let a file replace another range.
            && self.entries.iter().map(|it| it.version).eq(self.versions())
            && self.entries.iter().all(|it| it.statement.version == it.version && it.statement.thread == self.thread)
            && self.ended.iter().all(|it| it.statement.thread == self.thread)
            && self.entries.iter().all(|it| it.values.is_some() == self.has_values())
    }

    pub const fn thread(&self) -> &ThreadId {
        &self.thread
    }

    pub const fn versions(&self) -> RangeInclusive<u64> {
        self.from..=self.to
    }

    /// Checks that the file has values. A file has the values of all its versions or of none.
    pub fn has_values(&self) -> bool {
        self.entries.first().is_some_and(|it| it.values.is_some())
    }

    pub fn at(&self, version: u64) -> Option<&ArchivedVersion> {
        self.entries.iter().find(|it| it.version == version)
    }

    /// Returns the content after erasure: signed data, statements and outcomes, without values.
    #[must_use]
    pub fn without_values(&self) -> Self {
        Self {
            entries: self.entries.iter().map(ArchivedVersion::without_values).collect(),
            ended: self.ended.iter().map(Transition::without_values).collect(),
            ..self.clone()
        }
    }

    /// Checks that the content matches the archive's row.
    pub fn is_of(&self, archive: &Archive) -> bool {
        let values = self.has_values() == archive.kept.has_values();
        values && self.thread == archive.thread && self.versions() == (archive.from..=archive.to)
    }
}
