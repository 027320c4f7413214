//! An episode's folder on disk: read without following anything, written whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::domain::episode::manifest::FILES_MAX;
use crate::domain::episode::verify::{FILE_BYTES_MAX, FileContent, Folder};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// What is no file must not make the reader wait, as a pipe would.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Names that are looked at: all that a manifest can name, itself, and enough beside to say that there is too much.
const NAMES_MAX: usize = 2 * FILES_MAX;

/// All of it is in memory at once. The longest run has a tenth of this; a file of a few bytes on disk can claim to be of many,
/// and five hundred such are no run.
const BYTES_MAX: u64 = 4 * FILE_BYTES_MAX;

/// Reads a folder. Files are opened beside it and not by a path, so that nothing can be put in their way meanwhile.
pub fn read(path: &Path) -> io::Result<Folder> {
    let folder = rustix::fs::open(path, FOLDER, Mode::empty())?;
    let mut names: Vec<OsString> = Vec::new();
    for entry in fs::read_dir(path)? {
        if names.len() == NAMES_MAX {
            return Err(io::Error::other("there are more files in it than any run has"));
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

/// What a file holds, of which no more than is left may come.
fn content(file: File, left: &mut u64) -> io::Result<FileContent> {
    if !file.metadata()?.is_file() {
        return Ok(FileContent::NotAFile);
    }
    let mut bytes = Vec::new();
    file.take(left.saturating_add(1).min(FILE_BYTES_MAX + 1)).read_to_end(&mut bytes)?;
    *left =
        left.checked_sub(bytes.len() as u64).ok_or_else(|| io::Error::other("there is more in it than any run has"))?;
    Ok(if bytes.len() as u64 > FILE_BYTES_MAX { FileContent::TooLong } else { FileContent::Bytes(bytes) })
}

/// Owner reads and writes, nobody else does anything.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const FOLDER_MODE: Mode = FILE_MODE.union(Mode::XUSR);
const MAKE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Writes a folder that is not there yet: beside it under another name, synced, and then put in its place, where nothing
/// may stand. `draft` makes the other name one that nobody else has.
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
        // From here on the folder is there; that it stays is for the disk to say.
        Ok(()) => Ok(rustix::fs::fsync(&above)?),
        Err(error) => {
            for file in written {
                // What cannot be removed lies under a name of its own, and is in nobody's way.
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

/// The folder under its other name. It is gone when this is, if nothing is left in it.
struct TemporaryFolder<'f> {
    above: &'f OwnedFd,
    name: OsString,
}

impl Drop for TemporaryFolder<'_> {
    fn drop(&mut self) {
        // After the rename there is nothing of that name.
        let _ = rustix::fs::unlinkat(self.above, &self.name, AtFlags::REMOVEDIR);
    }
}

#[cfg(test)]
mod tests;
