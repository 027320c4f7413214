//! Checks a state with the state guard and writes it to a file atomically.
//!
//! A commit has these steps:
//! - Resolve the target, and check the states.
//! - Open the target's folder from its root without following links, and lock it.
//! - Compare the file with the previous state that was checked.
//! - Write a draft beside the file, sync it, rename it to the file, and sync the folder.
//!
//! The lock is needed because comparing and replacing are two steps. Without it two commits could both find the same
//! previous state, and the second would undo the first. The folder is locked, because a lock on the file would end with
//! its replacement and a separate lock file would remain. Other programs that write without the lock are detected only
//! if they write before the comparison.

mod swap;
mod target;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_domain::guard::{
    AgentStateGuardCode, GuardCode, NormalizedState, StateGuard, ViolationSubject, Violations,
};
use countersign_domain::json::parse::{BYTES_MAX, JsonCode};

use swap::{ExpectedContent, FileSystemHooks};

/// The limit on waiting for other commits in the same folder. It is many times the duration of a commit, and short
/// enough to detect a lock that is never released.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// The folders in which files can be written. Their links are resolved once, at the start.
#[derive(Clone, Debug, Default)]
pub struct AllowedRoots(Vec<PathBuf>);

/// The error for a relative path.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{path:?} is not an absolute path")]
pub struct RootsError {
    pub path: PathBuf,
}

impl RootsError {
    /// The code in responses.
    pub const CODE: &'static str = "guard_roots_invalid";
}

impl AllowedRoots {
    /// Reads a list of absolute paths. A path that is not a folder allows nothing.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Result<Self, RootsError> {
        let resolved = |path: PathBuf| match path.is_absolute() {
            // A missing folder is no error, because no target can be in it.
            true => Ok(path.canonicalize().unwrap_or(path)),
            false => Err(RootsError { path }),
        };
        folders.into_iter().map(resolved).collect::<Result<_, _>>().map(Self)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PreviousContent<'a> {
    /// The file contains this state.
    Held(&'a [u8]),
    /// The file does not exist yet, and this is the previous state.
    Elsewhere(&'a [u8]),
    /// The file does not exist, and there is no previous state.
    Nothing,
}

/// A state to write.
#[derive(Clone, Copy, Debug)]
pub struct StateCommit<'a> {
    pub target: &'a Path,
    pub before: PreviousContent<'a>,
    pub proposed: &'a [u8],
}

/// The result of a commit.
#[derive(Clone, PartialEq, Debug)]
pub struct WrittenState {
    /// The path of the file, with links resolved.
    pub path: PathBuf,
    pub bytes: usize,
    /// The previous state, if there was one.
    pub previous: Option<NormalizedState>,
    pub state: NormalizedState,
}

/// The reason that a state was not written, or that the write may not survive a crash.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    #[error("blocked")]
    Blocked {
        found: Violations,
        /// The error of the operating system.
        #[source]
        cause: Option<io::Error>,
    },
    /// The file was replaced, but the sync failed. A crash could undo the write.
    #[error("{}", GuardCode::Unsynced.detail())]
    Unsynced {
        committed: Box<WrittenState>,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
}

/// Checks a state, and writes its canonical text to the file.
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
    // The state is checked even if the target is invalid, so that one run lists all violations.
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
        // Canonical numbers can be longer than the input, so the written text could exceed the limit for reading.
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
