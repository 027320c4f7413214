//! An episode's folder on disk: read without following anything, written whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::domain::episode::manifest::FILES_MAX;
use crate::domain::episode::verify::{Content, FILE_BYTES_MAX, Folder};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// What is no file must not make the reader wait, as a pipe would.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Names that are looked at: all that a manifest can name, itself, and enough beside to say that there is too much.
const NAMES_MAX: usize = 2 * FILES_MAX;

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
    let mut entries = Vec::with_capacity(names.len());
    for name in names {
        let content = match rustix::fs::openat(&folder, &name, READ, Mode::empty()) {
            Ok(file) => content(File::from(file))?,
            Err(Errno::LOOP | Errno::NXIO) => Content::NotAFile,
            Err(error) => return Err(error.into()),
        };
        entries.push((name.to_string_lossy().into_owned(), content));
    }
    Ok(Folder { entries })
}

fn content(file: File) -> io::Result<Content> {
    if !file.metadata()?.is_file() {
        return Ok(Content::NotAFile);
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(if bytes.len() as u64 > FILE_BYTES_MAX { Content::TooLong } else { Content::Bytes(bytes) })
}
