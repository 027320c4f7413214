//! A guarded state in a file: judged, and then written whole or not at all.
//!
//! A commit resolves the target, judges the states, opens the target's folder from its root downwards without
//! following a link, locks it, compares the file with the state that was judged, writes a draft beside the file, syncs
//! it, puts it in the file's place, and syncs the folder.
//!
//! Why a lock: comparing and replacing are two steps. Without one, two committers could both find the state that both
//! had judged, and the second would undo the first. It is the folder that is locked, because the file is replaced, and
//! a lock on the old one would hold nobody, while a file for the lock alone would lie about for ever. Whoever writes
//! there and takes no lock is not kept out; what it wrote before the comparison is noticed.

mod swap;
mod target;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::guard::{AgentStateGuardCode, GuardCode, NormalizedState, StateGuard, ViolationSubject, Violations};
use crate::domain::json::parse::{BYTES_MAX, JsonCode};
use swap::{ExpectedContent, FileSystemHooks};

/// How long a commit waits for others in the same folder: many times what one takes, and short enough that a lock
/// which somebody keeps is noticed.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// The folders in which files may be written. Links are resolved once, here.
#[derive(Clone, Debug, Default)]
pub struct AllowedRoots(Vec<PathBuf>);

/// Why folders are not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{path:?} is no absolute path")]
pub struct RootsError {
    pub path: PathBuf,
}

impl RootsError {
    /// The code, as answers carry it.
    pub const CODE: &'static str = "guard_roots_invalid";
}

impl AllowedRoots {
    /// Reads a list of absolute paths. One that leads to no folder admits nothing.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Result<Self, RootsError> {
        let resolved = |path: PathBuf| match path.is_absolute() {
            true => Ok(path.canonicalize().unwrap_or(path)),
            false => Err(RootsError { path }),
        };
        folders.into_iter().map(resolved).collect::<Result<_, _>>().map(Self)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreviousContent<'a> {
    /// The file holds this state.
    Held(&'a [u8]),
    /// There is no file yet, and this is the state before.
    Elsewhere(&'a [u8]),
    /// There is neither a file nor a state.
    Nothing,
}

/// A state that shall be written.
#[derive(Clone, Copy, Debug)]
pub struct StateCommit<'a> {
    pub target: &'a Path,
    pub before: PreviousContent<'a>,
    pub proposed: &'a [u8],
}

/// A state that was written.
#[derive(Clone, PartialEq, Debug)]
pub struct WrittenState {
    /// The file, links resolved.
    pub path: PathBuf,
    pub bytes: usize,
    /// The state before, if there was one.
    pub previous: Option<NormalizedState>,
    pub state: NormalizedState,
}

/// A state that was not written, or not surely.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    #[error("blocked")]
    Blocked {
        found: Violations,
        /// What the operating system said.
        #[source]
        cause: Option<io::Error>,
    },
    /// The file was replaced, and could not be made to survive a crash.
    #[error("{}", GuardCode::Unsynced.detail())]
    Unsynced {
        committed: Box<WrittenState>,
        /// What the operating system said.
        #[source]
        cause: io::Error,
    },
}

/// Judges a state, and writes its canonical text to the file.
pub fn commit(
    guard: &StateGuard,
    roots: &AllowedRoots,
    request: &StateCommit<'_>,
) -> Result<WrittenState, StateFileError> {
    commit_at(guard, roots, request, &mut FileSystemHooks { wait: LOCK_WAIT_MAX, before: &mut |_| Ok(()) })
}

fn commit_at(
    guard: &StateGuard,
    roots: &AllowedRoots,
    request: &StateCommit<'_>,
    edge: &mut FileSystemHooks<'_>,
) -> Result<WrittenState, StateFileError> {
    let mut found = Violations::default();
    let target = target::resolve(request.target, roots, &mut found);
    let judged = match request.before {
        PreviousContent::Held(current) | PreviousContent::Elsewhere(current) => {
            guard.transition(current, request.proposed).map(|it| (Some(it.previous), it.proposed))
        }
        PreviousContent::Nothing => guard.first(request.proposed).map(|state| (None, state)),
    };
    let (target, (previous, state)) = match (target, judged) {
        (Some(target), Ok(judged)) => (target, judged),
        (_, Err(wrong)) => return Err(blocked(found.and(wrong))),
        (None, Ok(_)) => return Err(blocked(found)),
    };
    if state.text.len() > BYTES_MAX {
        // Numbers grow when they are written out; a file that nobody can read again would be the last one.
        found.add(AgentStateGuardCode::Write, ViolationSubject::Proposed, GuardCode::Json(JsonCode::TooLarge));
        return Err(blocked(found));
    }
    let expected = match (&request.before, &previous) {
        (PreviousContent::Held(_), Some(previous)) => ExpectedContent::State(&previous.text),
        _ => ExpectedContent::Nothing,
    };
    let swapped = swap::swap(&target, &expected, state.text.as_bytes(), edge);
    let bytes = state.text.len();
    let committed = WrittenState { path: target.path(), bytes, previous, state };
    match swapped {
        Ok(()) => Ok(committed),
        Err(swap::SwapError { code: GuardCode::Unsynced, cause: Some(cause) }) => {
            Err(StateFileError::Unsynced { committed: Box::new(committed), cause })
        }
        Err(swap::SwapError { code, cause }) => {
            found.add(AgentStateGuardCode::Write, ViolationSubject::Target, code);
            Err(StateFileError::Blocked { found, cause })
        }
    }
}

const fn blocked(found: Violations) -> StateFileError {
    StateFileError::Blocked { found, cause: None }
}
