//! Where the copy of the log goes: a file that lines are appended to, or standard output.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::config::LogExportTarget;

/// Appends whole lines, and returns once they are where they stay. Blocks.
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

/// The file is opened anew each time: after it was moved away, lines go to a new one. What is there already keeps its
/// mode; a new one is its owner's alone.
fn append_to(path: &Path, lines: &str) -> io::Result<()> {
    let wait_for_nobody = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(wait_for_nobody);
    let mut file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the copy of the log goes to a plain file"));
    }
    // A crash may have cut the last line short. It is written again, whole, on a line of its own.
    let whole = match file.seek(SeekFrom::End(-1)) {
        Ok(_) => {
            let mut last = [0];
            file.read_exact(&mut last)?;
            last == *b"\n"
        }
        // There is nothing in it.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => true,
        Err(error) => return Err(error),
    };
    let begin = if whole { "" } else { "\n" };
    file.write_all(format!("{begin}{lines}").as_bytes())?;
    file.sync_data()
}

#[cfg(test)]
mod tests;
