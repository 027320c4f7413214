//! Appends exported audit events to a file or to standard output.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The target of the log export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogExportTarget {
    Stdout,
    /// A file. Lines are appended.
    File(PathBuf),
}

/// Appends whole lines, and returns after they are synced. Blocks.
pub fn append(to: &LogExportTarget, lines: &str) -> io::Result<()> {
    match to {
        LogExportTarget::Stdout => {
            let mut out = io::stdout().lock();
            out.write_all(lines.as_bytes())?;
            out.flush()
        }
        LogExportTarget::File(path) => append_to(path, lines),
    }
}

/// Appends to a file. The file is opened each time, so that lines go to a new file after log rotation. An existing file
/// keeps its mode, and a new one is readable by its owner only.
fn append_to(path: &Path, lines: &str) -> io::Result<()> {
    let wait_for_nobody = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(wait_for_nobody);
    let mut file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the log export (`siem.output`) must be a regular file",
        ));
    }
    // A crash can leave an incomplete last line. The caller writes it again, so it gets a line of its own.
    let whole = match file.seek(SeekFrom::End(-1)) {
        Ok(_) => {
            let mut last = [0];
            file.read_exact(&mut last)?;
            last == *b"\n"
        }
        // The file is empty.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => true,
        Err(error) => return Err(error),
    };
    let begin = if whole { "" } else { "\n" };
    file.write_all(format!("{begin}{lines}").as_bytes())?;
    file.sync_data()
}

#[cfg(test)]
mod tests;
