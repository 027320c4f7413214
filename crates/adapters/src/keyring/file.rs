//! Reads, creates and replaces the keyring file. It checks permissions before use, and writes atomically.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use countersign_domain::keys::Keys;
use zeroize::Zeroizing;

use super::KeyringError;

/// The limit on the file's size. Keys are retired every few weeks at most, and thousands of them fit.
const KEYRING_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Only the owner can read and write the file.
const MODE: u32 = 0o600;

/// Only the owner can use the directory.
const DIRECTORY_MODE: u32 = 0o700;

/// Permission bits of the group and of other users.
const OTHERS: u32 = 0o077;

/// Metadata that changes with the content of the file. Each change creates a new file under the same name. The change
/// time also detects an edit in place and a change of permissions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileFingerprint {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileFingerprint {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

pub(super) fn stamp(path: &Path) -> Result<FileFingerprint, KeyringError> {
    fs::metadata(path).map(|it| FileFingerprint::of(&it)).map_err(failed("look at", path))
}

/// Reads the keyring, and the metadata of the same open file.
pub(super) fn load(path: &Path) -> Result<(FileFingerprint, Keys), KeyringError> {
    let mut file = File::open(path).map_err(failed("open", path))?;
    let metadata = file.metadata().map_err(failed("look at", path))?;
    // The mode is read from the open file, because the path could lead to another file by now.
    let mode = metadata.mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(KeyringError::Exposed { path: path.to_owned(), mode });
    }
    if !metadata.is_file() || metadata.len() > KEYRING_BYTES_MAX {
        let source = io::Error::other("it is not a regular file, or it is too large");
        return Err(failed("read", path)(source));
    }
    let capacity = usize::try_from(metadata.len()).unwrap_or(0) + 1;
    // The buffer has its final size at once: a growing one would leave copies of the keys in freed memory.
    let mut text = Zeroizing::new(String::with_capacity(capacity));
    // The file can grow after the size check, so the read has its own limit.
    (&mut file).take(KEYRING_BYTES_MAX).read_to_string(&mut text).map_err(failed("read", path))?;
    let keys =
        Keys::read(&text).map_err(|source| KeyringError::Invalid { origin: path.display().to_string(), source })?;
    Ok((FileFingerprint::of(&metadata), keys))
}

/// Locks the keyring against other writers until the file is dropped. The lock is a separate file, because the keyring
/// itself is replaced.
///
/// An attacker with access to the folder can put another file under the lock's name, and the caller can be root. So
/// links are not followed, opening never blocks, and only a file that was created here changes its owner.
pub(super) fn lock(path: &Path) -> Result<File, KeyringError> {
    let beside = beside(path, ".lock");
    let file = match open_options().create_new(true).open(&beside) {
        Ok(made) => {
            // A lock file of root would keep the gateway's user from changing its own keyring.
            owned_as(path, &made, &beside)?;
            made
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            open_options().open(&beside).map_err(failed("open the lock", &beside))?
        }
        Err(error) => return Err(failed("make the lock", &beside)(error)),
    };
    if !file.metadata().map_err(failed("read", &beside))?.is_file() {
        return Err(failed("open the lock", &beside)(io::Error::other("it is not a regular file")));
    }
    file.lock().map_err(failed("take the lock", &beside))?;
    Ok(file)
}

/// Options for files beside the keyring: links are not followed, and opening a pipe does not block.
fn open_options() -> OpenOptions {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.write(true).mode(MODE).custom_flags(flags.bits().cast_signed());
    options
}

/// Creates the keyring. If another process has created it, that file stays unchanged.
pub(super) fn create(path: &Path, keys: &Keys) -> Result<(), KeyringError> {
    let directory = directory(path);
    let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
    made.map_err(failed("make the directory", directory))?;
    // The lock protects the draft, which has a fixed name.
    let _lock = lock(path)?;
    let (draft, _) = write_draft(path, keys)?;
    // A hard link never replaces an existing file. A rename would.
    let linked = match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked.map_err(failed("make", path)),
    };
    fs::remove_file(&draft).map_err(failed("remove", &draft))?;
    linked?;
    // Without this a power failure could remove the name of a synced file.
    sync_directory(path)
}

/// Resolves symbolic links.
pub(super) fn real(path: &Path) -> Result<PathBuf, KeyringError> {
    fs::canonicalize(path).map_err(failed("open", path))
}

/// Replaces the content of the keyring. The caller holds the lock.
pub(super) fn replace(path: &Path, keys: &Keys) -> Result<(), KeyringError> {
    let (draft, file) = write_draft(path, keys)?;
    // This runs before the rename, so that the gateway's user can read the keyring at every moment.
    owned_as(path, &file, &draft)?;
    fs::rename(&draft, path).map_err(failed("replace", path))?;
    sync_directory(path)
}

/// Gives a file beside the keyring to the keyring's owner. If root runs a command, the gateway's user must still be
/// able to read the result.
fn owned_as(keyring: &Path, file: &File, named: &Path) -> Result<(), KeyringError> {
    let Ok(owner) = fs::metadata(keyring) else { return Ok(()) };
    let own = file.metadata().map_err(failed("read", named))?;
    if (own.uid(), own.gid()) == (owner.uid(), owner.gid()) {
        return Ok(());
    }
    fchown(file, Some(owner.uid()), Some(owner.gid())).map_err(failed("give to the keyring's owner", named))
}

/// Writes and syncs the new keyring beside the old one. One name is enough because of the lock. A file of that name was
/// left by a process that was killed, and is removed. The open file is returned because the name could lead to another
/// file later.
fn write_draft(path: &Path, keys: &Keys) -> Result<(PathBuf, File), KeyringError> {
    let draft = beside(path, ".new");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove", &draft)(error)),
        _ => (),
    }
    let mut file = open_options().create_new(true).open(&draft).map_err(failed("make", &draft))?;
    // The content must be on disk before the rename, or a crash could leave an empty keyring.
    file.write_all(&keys.write()).map_err(failed("write", &draft))?;
    file.sync_all().map_err(failed("sync", &draft))?;
    Ok((draft, file))
}

fn sync_directory(path: &Path) -> Result<(), KeyringError> {
    let directory = directory(path);
    File::open(directory).and_then(|it| it.sync_all()).map_err(failed("sync the directory", directory))
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> KeyringError {
    move |source| match source.kind() {
        io::ErrorKind::NotFound if matches!(doing, "open" | "look at") => {
            KeyringError::Missing { path: path.to_owned() }
        }
        _ => KeyringError::Io { doing, path: path.to_owned(), source },
    }
}
