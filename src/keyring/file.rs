//! The file itself: read with suspicion, written whole or not at all.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::KeyringError;
use crate::domain::keys::Keys;

/// A key is retired every few weeks at most; thousands of them fit.
const KEYRING_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Owner reads and writes, nobody else does anything.
const MODE: u32 = 0o600;

/// The same for its directory.
const DIRECTORY_MODE: u32 = 0o700;

/// Any permission of the group or of others.
const OTHERS: u32 = 0o077;

/// What tells one content of the file from another without reading it. Every change is a new file under
/// the old name; the change time also sees one that was edited in place or opened to others.
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

/// Reads the keyring with the stamp of the very file that was read.
pub(super) fn load(path: &Path) -> Result<(FileFingerprint, Keys), KeyringError> {
    let mut file = File::open(path).map_err(failed("open", path))?;
    let metadata = file.metadata().map_err(failed("look at", path))?;
    let mode = metadata.mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(KeyringError::Exposed { path: path.to_owned(), mode });
    }
    if !metadata.is_file() || metadata.len() > KEYRING_BYTES_MAX {
        let source = io::Error::other("it is not a file of sensible size");
        return Err(failed("read", path)(source));
    }
    let room = usize::try_from(metadata.len()).unwrap_or(0) + 1;
    let mut text = Zeroizing::new(String::with_capacity(room));
    (&mut file).take(KEYRING_BYTES_MAX).read_to_string(&mut text).map_err(failed("read", path))?;
    let keys =
        Keys::read(&text).map_err(|source| KeyringError::Invalid { origin: path.display().to_string(), source })?;
    Ok((FileFingerprint::of(&metadata), keys))
}

/// Holds the keyring against other writers until it is dropped. A file of its own, since the keyring
/// itself is replaced.
///
/// Whoever has the folder may have put something else under its name, and an administrator of the machine may be who
/// locks: so nothing is followed, nothing is waited for that is no file, and only what was made here is given away.
pub(super) fn lock(path: &Path) -> Result<File, KeyringError> {
    let beside = beside(path, ".lock");
    let file = match open_options().create_new(true).open(&beside) {
        Ok(made) => {
            owned_as(path, &made, &beside)?;
            made
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            open_options().open(&beside).map_err(failed("open the lock", &beside))?
        }
        Err(error) => return Err(failed("make the lock", &beside)(error)),
    };
    if !file.metadata().map_err(failed("read", &beside))?.is_file() {
        return Err(failed("open the lock", &beside)(io::Error::other("it is no file")));
    }
    file.lock().map_err(failed("take the lock", &beside))?;
    Ok(file)
}

/// How files beside the keyring are opened: never through a link, and without waiting for whoever reads from a pipe.
fn open_options() -> OpenOptions {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.write(true).mode(MODE).custom_flags(flags.bits().cast_signed());
    options
}

/// Makes the keyring where there is none. If there is one by now it stays as it is.
pub(super) fn create(path: &Path, keys: &Keys) -> Result<(), KeyringError> {
    let directory = directory(path);
    let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
    made.map_err(failed("make the directory", directory))?;
    let _lock = lock(path)?;
    let (draft, _) = write_draft(path, keys)?;
    // A link, unlike a rename, never takes the place of something.
    let linked = match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked.map_err(failed("make", path)),
    };
    fs::remove_file(&draft).map_err(failed("remove", &draft))?;
    linked?;
    sync_directory(path)
}

/// The file that the name leads to.
pub(super) fn real(path: &Path) -> Result<PathBuf, KeyringError> {
    fs::canonicalize(path).map_err(failed("open", path))
}

/// Puts another content in the keyring's place. The caller holds the lock.
pub(super) fn replace(path: &Path, keys: &Keys) -> Result<(), KeyringError> {
    let (draft, file) = write_draft(path, keys)?;
    owned_as(path, &file, &draft)?;
    fs::rename(&draft, path).map_err(failed("replace", path))?;
    sync_directory(path)
}

/// Gives a file beside the keyring to whoever has the keyring: what somebody else changes, as an administrator of the machine
/// does, stays the gateway's.
fn owned_as(keyring: &Path, file: &File, named: &Path) -> Result<(), KeyringError> {
    let Ok(owner) = fs::metadata(keyring) else { return Ok(()) };
    let own = file.metadata().map_err(failed("read", named))?;
    if (own.uid(), own.gid()) == (owner.uid(), owner.gid()) {
        return Ok(());
    }
    fchown(file, Some(owner.uid()), Some(owner.gid())).map_err(failed("give to the keyring's owner", named))
}

/// Writes and syncs the keyring beside itself. The lock makes the one name enough: what a killed process
/// left there is removed by the next. The file comes along: by its name it might be another one by then.
fn write_draft(path: &Path, keys: &Keys) -> Result<(PathBuf, File), KeyringError> {
    let draft = beside(path, ".new");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove", &draft)(error)),
        _ => (),
    }
    let mut file = open_options().create_new(true).open(&draft).map_err(failed("make", &draft))?;
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
