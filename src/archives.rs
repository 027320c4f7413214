//! Archives on disk: each a file of its own in a folder of its thread, written whole or not at all, and read no further
//! than it may be.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::domain::chain::hash::Digest;
use crate::domain::threads::archive::{Archive, PLAIN_BYTES_MAX};

#[cfg(test)]
mod tests;

/// Owner reads and writes, nobody else does anything.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const FOLDER_MODE: u32 = 0o700;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// What is no file must not make the reader wait, as a pipe would.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const MAKE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Clone, Debug)]
pub struct Archives {
    folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveFileError {
    /// It is not there, or cannot be read.
    #[error("the file {} cannot be read", .0.display())]
    Missing(PathBuf, #[source] io::Error),
    /// It is not the one that was written.
    #[error("the file {} is not the one that was written: {_1}", .0.display())]
    Damaged(PathBuf, &'static str),
}

impl Archives {
    /// Those in that folder, which is made when the first is written.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Where the archive is, or would be. Names of threads are for machines and may differ in case alone, so folders are
    /// called by their hashes. With its values and without it is two files: the one is there before the other goes.
    pub fn path(&self, archive: &Archive) -> PathBuf {
        let thread = Digest::of_file(archive.thread.as_str().as_bytes()).to_string();
        let thread = thread.trim_start_matches("sha256:");
        let without = if archive.kept.has_values() { "" } else { ".erased" };
        let name = format!("{:020}-{:020}{without}.json.gz", archive.from, archive.to);
        self.folder.join(&thread[..2]).join(thread).join(name)
    }

    /// Writes it over whatever lies there, and returns once it stays. Blocks.
    pub fn write(&self, archive: &Archive, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(archive);
        let (folder, name) = parts(&path)?;
        make_folders(&self.folder, folder)?;
        let folder = rustix::fs::open(folder, FOLDER, Mode::empty())?;
        // One gateway writes at a time, so what lies under this name was left by one that was killed.
        let draft = format!(".{name}.draft");
        match rustix::fs::unlinkat(&folder, &draft, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let put = write_draft(&folder, &draft, bytes)
            .and_then(|()| Ok(rustix::fs::renameat(&folder, &draft, &folder, name)?));
        if let Err(error) = put {
            // What cannot be removed is removed by the next who writes it.
            let _ = rustix::fs::unlinkat(&folder, &draft, AtFlags::empty());
            return Err(error);
        }
        Ok(rustix::fs::fsync(&folder)?)
    }

    /// The text of an archive, which is the one that its row names. Blocks.
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

    /// Removes every file of the thread that has values of the archive's versions or of older ones: those that rows named, and
    /// those that a gateway left that was killed before a row named them, however it had cut them. Blocks.
    pub fn remove_values(&self, archive: &Archive) -> io::Result<()> {
        let path = self.path(archive);
        let (folder, _) = parts(&path)?;
        // A folder that is not there may be back tomorrow, with all that was in it.
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

    /// Removes it; that it is not there any more is as well. Blocks.
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

/// The first version in a file of that name, if it has values: an archive, or what a writer that was killed left of one.
fn first_with_values(name: &str) -> Option<u64> {
    let name = name.strip_prefix('.').and_then(|it| it.strip_suffix(".draft")).unwrap_or(name);
    let (from, to) = name.strip_suffix(".json.gz")?.split_once('-')?;
    let _: u64 = to.parse().ok()?;
    from.parse().ok()
}

/// A file's bytes for a text. Equal texts have equal bytes: there is no time and no name in them.
pub fn packed(text: &str) -> io::Result<Vec<u8>> {
    let mut packing = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    packing.write_all(text.as_bytes())?;
    packing.finish()
}

/// The text of a file's bytes; nothing, if it is none or longer than it may be. No more than that is ever unpacked.
pub fn unpacked(bytes: &[u8], plain_bytes_max: u64) -> Option<String> {
    let max = plain_bytes_max.min(PLAIN_BYTES_MAX);
    let mut plain = Vec::new();
    let mut unpacking = GzDecoder::new(bytes).take(max + 1);
    unpacking.read_to_end(&mut plain).ok()?;
    // What comes after the text is nobody's, and no reason to believe the rest.
    let is_all = unpacking.into_inner().into_inner().is_empty();
    if !is_all || plain.len() as u64 > max { None } else { String::from_utf8(plain).ok() }
}

/// A file's bytes, one more than there may be at most.
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

/// Makes what is missing down to the thread's folder. Each new name is synced with the folder that it stands in.
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
