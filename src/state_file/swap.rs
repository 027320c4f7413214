//! Compares and swaps the content of a file in an opened, locked folder.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use countersign_domain::guard::{GuardCode, normal_form};
use countersign_domain::json::parse::BYTES_MAX;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::target::StateTarget;

/// Only the owner can read and write the file.
const MODE: u32 = 0o600;

/// One byte more than the limit, so that a longer file is detected.
const READ_BYTES_MAX: u64 = BYTES_MAX as u64 + 1;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// `NONBLOCK` is set because opening a pipe would otherwise block the reader.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const MAKE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The content that the file must have before the swap.
pub(super) enum ExpectedContent<'a> {
    Nothing,
    /// A state with this canonical text.
    State(&'a str),
}

/// The steps that can fail. Tests use them to make each step fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileSwapStep {
    Open,
    Compare,
    Write,
    Sync,
    Replace,
    SyncFolder,
}

/// The use of the file system.
pub(super) struct FileSystemHooks<'e> {
    /// The limit on waiting for the lock.
    pub(super) wait: Duration,
    /// A function that runs before each step. Its error counts as the step's error.
    pub(super) before: &'e mut dyn FnMut(FileSwapStep) -> io::Result<()>,
}

/// The reason that no swap happened. With [`GuardCode::Unsynced`] the swap happened.
#[derive(Debug)]
pub(super) struct SwapError {
    pub(super) code: GuardCode,
    pub(super) cause: Option<io::Error>,
}

impl From<GuardCode> for SwapError {
    fn from(code: GuardCode) -> Self {
        Self { code, cause: None }
    }
}

impl From<io::Error> for SwapError {
    fn from(cause: io::Error) -> Self {
        Self { code: GuardCode::WriteFailed, cause: Some(cause) }
    }
}

impl From<Errno> for SwapError {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}

pub(super) fn swap(
    target: &StateTarget,
    expected: &ExpectedContent<'_>,
    text: &[u8],
    edge: &mut FileSystemHooks<'_>,
) -> Result<(), SwapError> {
    (edge.before)(FileSwapStep::Open)?;
    // The lock is taken before the comparison and held until the folder is synced.
    let folder = lock(open(target)?, edge.wait)?;
    (edge.before)(FileSwapStep::Compare)?;
    compare(&folder, &target.name, expected)?;
    let draft = TemporaryFile::write(&folder, &target.name, text, edge)?;
    (edge.before)(FileSwapStep::Replace)?;
    match expected {
        ExpectedContent::Nothing => draft.put_at_unused_name(&target.name)?,
        ExpectedContent::State(_) => draft.put_over(&target.name)?,
    }
    // The content is replaced at this point, so a failed sync has its own code.
    let synced = (edge.before)(FileSwapStep::SyncFolder).and_then(|()| folder.sync_all());
    synced.map_err(|cause| SwapError { code: GuardCode::Unsynced, cause: Some(cause) })
}

/// Opens the folder from the root downwards. The path is already resolved, so a link in it was put there since then. It
/// is not followed, because it could lead out of the allowed roots.
fn open(target: &StateTarget) -> Result<File, SwapError> {
    let mut at = rustix::fs::open(&target.root, FOLDER, Mode::empty())?;
    for part in &target.below {
        at = rustix::fs::openat(&at, part, FOLDER, Mode::empty())?;
    }
    Ok(File::from(at))
}

/// Locks the folder against other commits until the file is dropped.
fn lock(folder: File, wait: Duration) -> Result<File, SwapError> {
    match folder.try_lock() {
        Ok(()) => return Ok(folder),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    // The system call has no time limit, so it runs in a thread. If the lock arrives after the limit, it is released at
    // once.
    let (told, heard) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        // The error is ignored: the waiting commit has given up.
        let _ = told.send(folder.lock().map(|()| folder));
    })?;
    Ok(heard.recv_timeout(wait).map_err(|_| GuardCode::FolderBusy)??)
}

fn compare(folder: &File, name: &OsStr, expected: &ExpectedContent<'_>) -> Result<(), SwapError> {
    let file = match rustix::fs::openat(folder, name, READ, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => {
            return match expected {
                ExpectedContent::Nothing => Ok(()),
                ExpectedContent::State(_) => Err(GuardCode::ContentAbsent.into()),
            };
        }
        // `O_NOFOLLOW` returns this for a symbolic link.
        Err(Errno::LOOP) => return Err(GuardCode::TargetNotAFile.into()),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(GuardCode::TargetNotAFile.into());
    }
    let ExpectedContent::State(state) = expected else { return Err(GuardCode::ContentPresent.into()) };
    let mut text = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut text)?;
    // Canonical texts are compared, so that white space and the order of members do not matter.
    if normal_form(&text).as_deref() == Some(*state) { Ok(()) } else { Err(GuardCode::ContentDiffers.into()) }
}

/// The new content, in a file beside the target. Dropping this removes the file.
struct TemporaryFile<'f> {
    folder: &'f File,
    name: OsString,
}

impl<'f> TemporaryFile<'f> {
    /// The name can be constant because the folder is locked. A file of that name was left by a process that was
    /// killed.
    fn write(folder: &'f File, name: &OsStr, text: &[u8], edge: &mut FileSystemHooks<'_>) -> Result<Self, SwapError> {
        let mut beside = OsString::from(".");
        beside.push(name);
        beside.push(".draft");
        match rustix::fs::unlinkat(folder, &beside, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let mut file = File::from(rustix::fs::openat(folder, &beside, MAKE, Mode::RUSR.union(Mode::WUSR))?);
        // From here on an early return removes the draft.
        let draft = Self { folder, name: beside };
        (edge.before)(FileSwapStep::Write)?;
        // The process can have a umask that removes permissions of the owner.
        file.set_permissions(Permissions::from_mode(MODE))?;
        file.write_all(text)?;
        (edge.before)(FileSwapStep::Sync)?;
        file.sync_all()?;
        Ok(draft)
    }

    fn put_over(self, name: &OsStr) -> Result<(), SwapError> {
        Ok(rustix::fs::renameat(self.folder, &self.name, self.folder, name)?)
    }

    /// A hard link never replaces an existing file. A rename would.
    fn put_at_unused_name(self, name: &OsStr) -> Result<(), SwapError> {
        match rustix::fs::linkat(self.folder, &self.name, self.folder, name, AtFlags::empty()) {
            Err(Errno::EXIST) => Err(GuardCode::ContentPresent.into()),
            linked => Ok(linked?),
        }
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        // After a rename there is no file to remove. The error is ignored because the next commit removes the file.
        let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}
