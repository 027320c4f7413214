//! Compare and swap of one file's content, beside an opened and locked folder.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::target::Target;
use crate::domain::guard::{Code, normal_form};
use crate::domain::json::parse::BYTES_MAX;

/// Owner reads and writes, nobody else does anything.
const MODE: u32 = 0o600;

/// One byte more than a state may have, so that a longer one is none.
const READ_BYTES_MAX: u64 = BYTES_MAX as u64 + 1;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// What is no file must not make the reader wait, as a pipe would.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const MAKE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What the file must hold for the swap to happen.
pub(super) enum Expected<'a> {
    /// There is no file.
    Nothing,
    /// A state with this canonical text.
    State(&'a str),
}

/// What can fail, apart so that tests can make each of it fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Open,
    Compare,
    Write,
    Sync,
    Replace,
    SyncFolder,
}

/// How the file system is used.
pub(super) struct Edge<'e> {
    /// How long to wait for the lock.
    pub(super) wait: Duration,
    /// Called before each step; an error is taken for the step's own.
    pub(super) before: &'e mut dyn FnMut(Step) -> io::Result<()>,
}

/// Why there was no swap; with [`Code::Unsynced`] there was one.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) code: Code,
    pub(super) cause: Option<io::Error>,
}

impl From<Code> for Failed {
    fn from(code: Code) -> Self {
        Self { code, cause: None }
    }
}

impl From<io::Error> for Failed {
    fn from(cause: io::Error) -> Self {
        Self { code: Code::WriteFailed, cause: Some(cause) }
    }
}

impl From<Errno> for Failed {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

pub(super) fn swap(target: &Target, expected: &Expected<'_>, text: &[u8], edge: &mut Edge<'_>) -> Result<(), Failed> {
    (edge.before)(Step::Open)?;
    let folder = lock(open(target)?, edge.wait)?;
    (edge.before)(Step::Compare)?;
    compare(&folder, &target.name, expected)?;
    let draft = Draft::write(&folder, &target.name, text, edge)?;
    (edge.before)(Step::Replace)?;
    match expected {
        Expected::Nothing => draft.put_where_nothing_is(&target.name)?,
        Expected::State(_) => draft.put_over(&target.name)?,
    }
    let synced = (edge.before)(Step::SyncFolder).and_then(|()| folder.sync_all());
    synced.map_err(|cause| Failed { code: Code::Unsynced, cause: Some(cause) })
}

/// The folder, opened from the root downwards. The path is resolved, so a link in it is one that somebody put there
/// since; it is not followed.
fn open(target: &Target) -> Result<File, Failed> {
    let mut at = rustix::fs::open(&target.root, FOLDER, Mode::empty())?;
    for part in &target.below {
        at = rustix::fs::openat(&at, part, FOLDER, Mode::empty())?;
    }
    Ok(File::from(at))
}

/// The folder again, held against other commits until it is dropped.
fn lock(folder: File, wait: Duration) -> Result<File, Failed> {
    match folder.try_lock() {
        Ok(()) => return Ok(folder),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    // A lock has no time limit of its own. If nobody listens any more when it comes, it is dropped.
    let (told, heard) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        // Nobody is left to be told.
        let _ = told.send(folder.lock().map(|()| folder));
    })?;
    Ok(heard.recv_timeout(wait).map_err(|_| Code::FolderBusy)??)
}

fn compare(folder: &File, name: &OsStr, expected: &Expected<'_>) -> Result<(), Failed> {
    let file = match rustix::fs::openat(folder, name, READ, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => {
            return match expected {
                Expected::Nothing => Ok(()),
                Expected::State(_) => Err(Code::ContentAbsent.into()),
            };
        }
        Err(Errno::LOOP) => return Err(Code::TargetNotAFile.into()),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(Code::TargetNotAFile.into());
    }
    let Expected::State(state) = expected else { return Err(Code::ContentPresent.into()) };
    let mut text = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut text)?;
    if normal_form(&text).as_deref() == Some(*state) { Ok(()) } else { Err(Code::ContentDiffers.into()) }
}

/// The new content beside the file. It is gone when this is, however that comes.
struct Draft<'f> {
    folder: &'f File,
    name: OsString,
}

impl<'f> Draft<'f> {
    /// One name is enough, since the folder is locked: what lies there was left by a process that was killed.
    fn write(folder: &'f File, name: &OsStr, text: &[u8], edge: &mut Edge<'_>) -> Result<Self, Failed> {
        let mut beside = OsString::from(".");
        beside.push(name);
        beside.push(".draft");
        match rustix::fs::unlinkat(folder, &beside, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let mut file = File::from(rustix::fs::openat(folder, &beside, MAKE, Mode::RUSR.union(Mode::WUSR))?);
        let draft = Self { folder, name: beside };
        (edge.before)(Step::Write)?;
        // The process may be set to take permissions away from its owner, too.
        file.set_permissions(Permissions::from_mode(MODE))?;
        file.write_all(text)?;
        (edge.before)(Step::Sync)?;
        file.sync_all()?;
        Ok(draft)
    }

    fn put_over(self, name: &OsStr) -> Result<(), Failed> {
        Ok(rustix::fs::renameat(self.folder, &self.name, self.folder, name)?)
    }

    /// A link, unlike a rename, never takes the place of something.
    fn put_where_nothing_is(self, name: &OsStr) -> Result<(), Failed> {
        match rustix::fs::linkat(self.folder, &self.name, self.folder, name, AtFlags::empty()) {
            Err(Errno::EXIST) => Err(Code::ContentPresent.into()),
            linked => Ok(linked?),
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove; an error leaves what the next commit removes.
        let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}
