//! Reads and writes an episode's folder on disk. Reading follows no symbolic link, and writing is atomic.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use countersign_domain::episode::manifest::FILES_MAX;
use countersign_domain::episode::verify::{FILE_BYTES_MAX, FileContent, Folder};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// `NONBLOCK` is set because opening a pipe would otherwise block the reader.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The largest number of names: every file that a manifest can name, the manifest, and enough others to report the
/// excess.
const NAMES_MAX: usize = 2 * FILES_MAX;

/// All files are in memory at the same time, so their sum is limited. The longest episode needs a tenth of this. Sparse
/// files can claim many bytes with few on disk, so the number of files alone is no limit.
const BYTES_MAX: u64 = 4 * FILE_BYTES_MAX;

/// Reads a folder. Files are opened relative to the folder's handle and not by path, so that an attacker cannot swap
/// the folder during the read.
pub fn read(path: &Path) -> io::Result<Folder> {
    let folder = rustix::fs::open(path, FOLDER, Mode::empty())?;
    let mut names: Vec<OsString> = Vec::new();
    for entry in fs::read_dir(path)? {
        if names.len() == NAMES_MAX {
            return Err(io::Error::other("the folder has more files than an episode can have"));
        }
        names.push(entry?.file_name());
    }
    names.sort();
    let (mut entries, mut left) = (Vec::with_capacity(names.len()), BYTES_MAX);
    for name in names {
        let content = match rustix::fs::openat(&folder, &name, READ, Mode::empty()) {
            Ok(file) => content(File::from(file), &mut left)?,
            Err(Errno::LOOP | Errno::NXIO) => FileContent::NotAFile,
            Err(error) => return Err(error.into()),
        };
        entries.push((name.to_string_lossy().into_owned(), content));
    }
    Ok(Folder { entries })
}

/// Reads the content of a file and subtracts its size from the bytes that are left.
fn content(file: File, left: &mut u64) -> io::Result<FileContent> {
    if !file.metadata()?.is_file() {
        return Ok(FileContent::NotAFile);
    }
    let mut bytes = Vec::new();
    file.take(left.saturating_add(1).min(FILE_BYTES_MAX + 1)).read_to_end(&mut bytes)?;
    *left = left
        .checked_sub(bytes.len() as u64)
        .ok_or_else(|| io::Error::other("the folder is larger than an episode can be"))?;
    Ok(if bytes.len() as u64 > FILE_BYTES_MAX { FileContent::TooLong } else { FileContent::Bytes(bytes) })
}

/// Only the owner can read and write the files.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const FOLDER_MODE: Mode = FILE_MODE.union(Mode::XUSR);
const MAKE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Writes a new folder. The files are first written and synced under a temporary name, and the folder is then renamed.
/// An existing folder is not replaced. `draft` makes the temporary name unique.
pub fn write(path: &Path, draft: &str, files: &[(&str, &[u8])]) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::other("this names no folder"))?;
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    let above = rustix::fs::open(above, FOLDER, Mode::empty())?;
    let draft = TemporaryFolder { above: &above, name: format!(".episode-{draft}").into() };
    rustix::fs::mkdirat(&above, &draft.name, FOLDER_MODE)?;
    let folder = rustix::fs::openat(&above, &draft.name, FOLDER.union(OFlags::NOFOLLOW), Mode::empty())?;
    let mut written = Vec::with_capacity(files.len());
    let put = write_files(&folder, files, &mut written)
        .and_then(|()| Ok(rustix::fs::renameat_with(&above, &draft.name, &above, name, RenameFlags::NOREPLACE)?));
    match put {
        // The folder has its name now. The sync makes the rename durable.
        Ok(()) => Ok(rustix::fs::fsync(&above)?),
        Err(error) => {
            for file in written {
                // The error is ignored: the files are under the temporary name and block no other write.
                let _ = rustix::fs::unlinkat(&folder, file, AtFlags::empty());
            }
            Err(error)
        }
    }
}

fn write_files<'n>(folder: &OwnedFd, files: &[(&'n str, &[u8])], written: &mut Vec<&'n str>) -> io::Result<()> {
    for (name, bytes) in files {
        let mut file = File::from(rustix::fs::openat(folder, *name, MAKE, FILE_MODE)?);
        written.push(name);
        file.write_all(bytes)?;
        file.sync_all()?;
    }
    Ok(rustix::fs::fsync(folder)?)
}

/// The folder under its temporary name. Dropping this removes the folder if it is empty.
struct TemporaryFolder<'f> {
    above: &'f OwnedFd,
    name: OsString,
}

impl Drop for TemporaryFolder<'_> {
    fn drop(&mut self) {
        // After the rename there is no folder with the temporary name, so the error is ignored.
        let _ = rustix::fs::unlinkat(self.above, &self.name, AtFlags::REMOVEDIR);
    }
}

#[cfg(test)]
mod tests;
