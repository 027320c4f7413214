//! Stores archives on disk, one file per archive in a folder per thread. Writes are atomic, and reads have a size
//! limit.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use countersign_domain::chain::hash::Digest;
use countersign_domain::threads::archive::{Archive, PLAIN_BYTES_MAX};
use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

#[cfg(test)]
mod tests;

/// Only the owner can read and write the files.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const FOLDER_MODE: u32 = 0o700;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// `NONBLOCK` is set because opening a pipe would otherwise block the reader.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const MAKE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Clone, Debug)]
pub struct Archives {
    folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveFileError {
    /// The file is missing or unreadable.
    #[error("the file {} cannot be read", .0.display())]
    Missing(PathBuf, #[source] io::Error),
    /// The file differs from the one that was written.
    #[error("the file {} differs from the one that was written: {_1}", .0.display())]
    Damaged(PathBuf, &'static str),
}

impl Archives {
    /// Creates a store in that folder. The first write creates the folder.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the path of the archive's file. Folders are named by hash because thread names can contain any character
    /// and can differ in case alone. An archive with values and the same archive without them are two files, because
    /// the new file has to exist before the old one is removed.
    pub fn path(&self, archive: &Archive) -> PathBuf {
        let thread = Digest::of_file(archive.thread.as_str().as_bytes()).to_string();
        let thread = thread.trim_start_matches("sha256:");
        let without = if archive.kept.has_values() { "" } else { ".erased" };
        let name = format!("{:020}-{:020}{without}.json.gz", archive.from, archive.to);
        self.folder.join(&thread[..2]).join(thread).join(name)
    }

    /// Writes the file, replaces an existing one, and returns after it is synced to disk. Blocks.
    pub fn write(&self, archive: &Archive, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(archive);
        let (folder, name) = parts(&path)?;
        make_folders(&self.folder, folder)?;
        let folder = rustix::fs::open(folder, FOLDER, Mode::empty())?;
        // One gateway writes at a time, so an existing draft was left by a process that was killed.
        let draft = format!(".{name}.draft");
        match rustix::fs::unlinkat(&folder, &draft, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let put = write_draft(&folder, &draft, bytes)
            .and_then(|()| Ok(rustix::fs::renameat(&folder, &draft, &folder, name)?));
        if let Err(error) = put {
            // The error is ignored: the next write of this archive removes the draft.
            let _ = rustix::fs::unlinkat(&folder, &draft, AtFlags::empty());
            return Err(error);
        }
        Ok(rustix::fs::fsync(&folder)?)
    }

    /// Reads the text of an archive and checks it against the hash and the sizes in its row. Blocks.
    pub fn read(&self, archive: &Archive) -> Result<String, ArchiveFileError> {
        let path = self.path(archive);
        let bytes = match read_bounded(&path, archive.bytes) {
            Ok(bytes) => bytes,
            Err(error) => return Err(ArchiveFileError::Missing(path, error)),
        };
        if bytes.len() as u64 != archive.bytes || Digest::of_file(&bytes) != archive.file {
            return Err(ArchiveFileError::Damaged(path, "it has another hash"));
        }
        match unpacked(&bytes, archive.plain_bytes) {
            Some(text) if text.len() as u64 == archive.plain_bytes => Ok(text),
            _ => Err(ArchiveFileError::Damaged(path, "it does not unpack to what was packed")),
        }
    }

    /// Removes every file of the thread that has values of the archive's versions or of older ones. This includes files
    /// that a killed gateway wrote before any row named them. Blocks.
    pub fn remove_values(&self, archive: &Archive) -> io::Result<()> {
        let path = self.path(archive);
        let (folder, _) = parts(&path)?;
        // A missing folder is an error: it can return with all its files, for example after a mount.
        let folder = rustix::fs::open(folder, FOLDER, Mode::empty())?;
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let entry = entry?;
            let first = entry.file_name().to_str().ok().and_then(first_with_values);
            if first.is_some_and(|it| it <= archive.to) {
                match rustix::fs::unlinkat(&folder, entry.file_name(), AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(rustix::fs::fsync(&folder)?)
    }

    /// Removes the file. A file that is already missing is no error. Blocks.
    pub fn remove(&self, archive: &Archive) -> io::Result<()> {
        let path = self.path(archive);
        let (folder, name) = parts(&path)?;
        let folder = match rustix::fs::open(folder, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            opened => opened?,
        };
        match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(rustix::fs::fsync(&folder)?),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the first version in a file of that name if the file has values: an archive, or the draft of a killed
/// writer.
fn first_with_values(name: &str) -> Option<u64> {
    let name = name.strip_prefix('.').and_then(|it| it.strip_suffix(".draft")).unwrap_or(name);
    let (from, to) = name.strip_suffix(".json.gz")?.split_once('-')?;
    let _: u64 = to.parse().ok()?;
    from.parse().ok()
}

/// Compresses a text. Equal texts give equal bytes, because the header contains no time and no name.
pub fn packed(text: &str) -> io::Result<Vec<u8>> {
    let mut packing = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    packing.write_all(text.as_bytes())?;
    packing.finish()
}

/// Decompresses a file. Returns `None` if the bytes are invalid or the text exceeds the limit, and never decompresses
/// more than the limit.
pub fn unpacked(bytes: &[u8], plain_bytes_max: u64) -> Option<String> {
    let max = plain_bytes_max.min(PLAIN_BYTES_MAX);
    let mut plain = Vec::new();
    let mut unpacking = GzDecoder::new(bytes).take(max + 1);
    unpacking.read_to_end(&mut plain).ok()?;
    // Bytes after the end of the text make the file invalid: no writer of this program adds any.
    let is_all = unpacking.into_inner().into_inner().is_empty();
    if !is_all || plain.len() as u64 > max { None } else { String::from_utf8(plain).ok() }
}

/// Reads a file up to one byte more than the limit, so that the caller can detect a longer file.
pub fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = File::from(rustix::fs::open(path, READ, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write_draft(folder: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::from(rustix::fs::openat(folder, name, MAKE, FILE_MODE)?);
    file.write_all(bytes)?;
    file.sync_all()
}

fn parts(path: &Path) -> io::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|it| it.to_str());
    path.parent().zip(name).ok_or_else(|| io::Error::other("an archive has a folder and a name"))
}

/// Creates the missing folders down to the thread's folder. Each new name is synced with its parent folder, so that it
/// survives a power failure.
fn make_folders(top: &Path, folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder == top {
        fs::create_dir_all(above)?;
    } else {
        make_folders(top, above)?;
    }
    match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => File::open(above)?.sync_all(),
    }
}
