//! The lock of the only gateway that serves from a SQLite database.
//!
//! Two gateways on one file would not damage it. But each would trust its own cache, and only one of them is intended.
//! The command line takes no such lock, because it runs beside the gateway.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::super::migrate::{OpenError, ServingProcess};
use super::beside;

/// The limit on the text of the lock file: the digits of a process id.
const PID_BYTES_MAX: u64 = 10;

/// The lock of a serving gateway. The system releases it when the process ends for any reason.
#[derive(Debug)]
pub(super) struct ServeLock {
    path: PathBuf,
    _file: File,
}

impl ServeLock {
    /// Takes the lock. It fails if another process has it, if the database has another name, or if the file system has
    /// no locks.
    pub(super) fn take(database: &Path) -> Result<Self, OpenError> {
        must_have_one_name(database)?;
        let path = beside(database, "-serve");
        let unlockable = |source| OpenError::Unlockable { file: path.clone(), source };
        // Other users must not be able to hold the lock.
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = file.map_err(unlockable)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, &path).map_err(unlockable)? => {
                write_pid(&mut file).map_err(unlockable)?;
                Ok(Self { path, _file: file })
            }
            // The file was removed between opening and locking it, so another process may hold the lock of its successor.
            Ok(()) | Err(TryLockError::WouldBlock) => {
                Err(OpenError::Served { database: database.to_owned(), by: ServingProcess(pid_in(&mut file)) })
            }
            Err(TryLockError::Error(source)) => Err(unlockable(source)),
        }
    }

    /// Returns the path of the lock file. While the file is at its path, no other gateway gets the lock.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Stores the process, for the error of a second gateway.
fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    write!(file, "{}", std::process::id())
}

/// Returns the process that has the lock, if it has stored itself.
fn pid_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

/// Refuses a file with several hard links. The lock belongs to the file's name, so each name would have its own lock.
fn must_have_one_name(database: &Path) -> Result<(), OpenError> {
    match database.metadata() {
        Ok(found) if found.nlink() > 1 => {
            Err(OpenError::HardLinked { database: database.to_owned(), links: found.nlink() })
        }
        Ok(_) => Ok(()),
        // A new database gets its own file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OpenError::File(error)),
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (locked, found) = (file.metadata()?, path.metadata()?);
    Ok((locked.dev(), locked.ino()) == (found.dev(), found.ino()))
}
