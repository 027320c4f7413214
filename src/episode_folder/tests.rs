use std::os::unix::fs::PermissionsExt as _;

use super::*;

const FILES: [(&str, &[u8]); 2] = [("events.jsonl", b"{}\n"), ("learn.jsonl", b"")];

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn folder_is_read_back_and_only_readable_by_its_owner() {
    let around = tempfile::tempdir().unwrap();
    let path = around.path().join("run");
    write(&path, "1", &FILES).unwrap();
    let entries = FILES.map(|(name, bytes)| (name.to_owned(), FileContent::Bytes(bytes.to_vec())));
    assert_eq!(read(&path).unwrap().entries, entries);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(path.join("events.jsonl")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(around.path()), ["run"]);
}

#[test]
fn existing_folder_stays_and_no_draft_remains() {
    let around = tempfile::tempdir().unwrap();
    for there in ["folder", "file", "link", "full"] {
        let path = around.path().join(there);
        match there {
            "folder" => fs::create_dir(&path).unwrap(),
            "file" => fs::write(&path, "mine").unwrap(),
            "link" => std::os::unix::fs::symlink("folder", &path).unwrap(),
            _ => write(&path, "0", &FILES).unwrap(),
        }
        let refused = write(&path, "1", &[("state.json", b"{}")]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{there}");
    }
    assert_eq!(names(&around.path().join("full")), ["events.jsonl", "learn.jsonl"]);
    assert_eq!(names(around.path()), ["file", "folder", "full", "link"]);
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing() {
    let around = tempfile::tempdir().unwrap();
    let path = around.path().join("run");
    assert!(write(&path, "1", &[FILES[0], FILES[0]]).is_err(), "two of one name");
    assert!(names(around.path()).is_empty());
    assert!(write(&around.path().join("no/where"), "1", &FILES).is_err());
    assert!(write(Path::new("/"), "1", &FILES).is_err());
}

#[test]
fn folder_over_the_size_limit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let claim = |number: u64, bytes: u64| {
        let file = File::create(folder.path().join(format!("{number}.json"))).unwrap();
        // The file is sparse: it takes no space on disk.
        file.set_len(bytes).unwrap();
    };
    (0..4).for_each(|it| claim(it, FILE_BYTES_MAX));
    assert_eq!(read(folder.path()).unwrap().entries.len(), 4);
    claim(4, 1);
    let error = read(folder.path()).unwrap_err();
    assert_eq!(error.to_string(), "the folder is larger than an episode can be");
}
