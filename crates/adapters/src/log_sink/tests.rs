use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn lines_are_appended_after_an_incomplete_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let to = LogExportTarget::File(path.clone());
    append(&to, "1\n2\n").unwrap();
    append(&to, "3\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
    fs::write(&path, "1\n{\"ind").unwrap();
    append(&to, "2\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "1\n{\"ind\n2\n");
}

#[test]
fn new_file_is_private_and_an_existing_one_retains_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    append(&LogExportTarget::File(path.clone()), "1\n").unwrap();
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    append(&LogExportTarget::File(path.clone()), "2\n").unwrap();
    assert_eq!(mode(), 0o640);
}

#[test]
fn pipe_is_refused_without_blocking() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let here = rustix::fs::CWD;
    rustix::fs::mknodat(here, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR, 0)
        .unwrap();
    for path in [fifo, folder.path().to_owned(), folder.path().join("nowhere/log.jsonl")] {
        assert!(append(&LogExportTarget::File(path), "1\n").is_err());
    }
}
