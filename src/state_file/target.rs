//! Resolves the path of a file and checks that it is below an allowed root.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use countersign_domain::guard::{AgentStateGuardCode, GuardCode, ViolationSubject, Violations};

use super::AllowedRoots;

/// A file that can be written: links resolved, below a root.
pub(super) struct StateTarget {
    pub(super) root: PathBuf,
    /// The file's folder, relative to the root.
    pub(super) below: PathBuf,
    pub(super) name: OsString,
}

impl StateTarget {
    pub(super) fn path(&self) -> PathBuf {
        // Joining an empty path would add a slash to the root.
        self.root.components().chain(self.below.components()).collect::<PathBuf>().join(&self.name)
    }
}

/// Resolves the target. Returns `None` if the file cannot be written, and adds the reason to `found`.
pub(super) fn resolve(target: &Path, roots: &AllowedRoots, found: &mut Violations) -> Option<StateTarget> {
    let mut refuse = |code| found.add(AgentStateGuardCode::Target, ViolationSubject::Target, code);
    // Without roots every target is refused: writing is off unless it is configured.
    if roots.0.is_empty() {
        refuse(GuardCode::NoRoots);
    }
    let (folder, name) = match place(target) {
        Ok(place) => place,
        Err(code) => {
            refuse(code);
            return None;
        }
    };
    let json = Path::new(&name).extension().is_some_and(|it| it == "json");
    if !json {
        refuse(GuardCode::TargetNotJson);
    }
    let Some((root, below)) = roots.0.iter().find_map(|it| Some((it, folder.strip_prefix(it).ok()?))) else {
        if !roots.0.is_empty() {
            refuse(GuardCode::OutsideRoots);
        }
        return None;
    };
    json.then(|| StateTarget { root: root.clone(), below: below.to_owned(), name })
}

/// Returns the folder, with links resolved, and the file name.
fn place(target: &Path) -> Result<(PathBuf, OsString), GuardCode> {
    if !target.is_absolute() {
        return Err(GuardCode::TargetNotAbsolute);
    }
    let real = match target.canonicalize() {
        Ok(real) => real,
        // A write through a broken link would create a file at an unchecked place.
        Err(_) if fs::symlink_metadata(target).is_ok_and(|it| it.is_symlink()) => return Err(GuardCode::LinkBroken),
        Err(_) => {
            let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else {
                return Err(GuardCode::TargetNotAbsolute);
            };
            // A new file has no path to resolve yet, so its folder is resolved instead.
            let folder = folder.canonicalize().ok().filter(|it| it.is_dir()).ok_or(GuardCode::FolderMissing)?;
            folder.join(name)
        }
    };
    match (real.parent(), real.file_name()) {
        (Some(folder), Some(name)) => Ok((folder.to_owned(), name.to_owned())),
        _ => Err(GuardCode::TargetNotJson),
    }
}
