use std::os::unix::fs::PermissionsExt as _;

use countersign_domain::threads::archive::ArchiveContentState;

use super::*;

fn of(text: &str) -> (Archive, Vec<u8>) {
    let bytes = packed(text).unwrap();
    let archive = Archive {
        thread: "Order:7".try_into().unwrap(),
        from: 0,
        to: 31,
        left: countersign_domain::primitives::time::Timestamp::from_millis(0),
        file: Digest::of_file(&bytes),
        bytes: bytes.len() as u64,
        plain_bytes: text.len() as u64,
        policy: Digest::of_file(b""),
        at: countersign_domain::primitives::time::Timestamp::from_millis(0),
        kept: ArchiveContentState::Whole {},
    };
    (archive, bytes)
}

#[test]
fn archive_is_read_back_and_only_readable_by_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let archives = Archives::in_folder(folder.path().join("deep/archives"));
    let (archive, bytes) = of("a text");
    archives.write(&archive, &bytes).unwrap();
    archives.write(&archive, &bytes).unwrap();
    assert_eq!(archives.read(&archive).unwrap(), "a text");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = archives.path(&archive);
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let beside: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(beside.len(), 1, "no draft is left");
    archives.remove(&archive).unwrap();
    archives.remove(&archive).unwrap();
    assert!(matches!(archives.read(&archive), Err(ArchiveFileError::Missing(..))));
}

#[test]
fn draft_of_a_killed_writer_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let archives = Archives::in_folder(folder.path());
    let (archive, bytes) = of("a text");
    archives.write(&archive, &bytes).unwrap();
    let path = archives.path(&archive);
    let draft = path.with_file_name(format!(".{}.draft", path.file_name().unwrap().to_str().unwrap()));
    fs::write(&draft, "half").unwrap();
    archives.write(&archive, &bytes).unwrap();
    assert_eq!(archives.read(&archive).unwrap(), "a text");
    assert!(!draft.exists());
}

#[test]
fn changed_cut_or_linked_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let archives = Archives::in_folder(folder.path());
    let (archive, bytes) = of("a text");
    archives.write(&archive, &bytes).unwrap();
    let path = archives.path(&archive);
    for spoiled in [&bytes[..bytes.len() - 1], &[&bytes[..], b"x"].concat(), &packed("b text").unwrap()[..], b""] {
        fs::write(&path, spoiled).unwrap();
        assert!(matches!(archives.read(&archive), Err(ArchiveFileError::Damaged(..))));
    }
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, &bytes).unwrap();
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(matches!(archives.read(&archive), Err(ArchiveFileError::Missing(..))));
}

#[test]
fn decompression_stops_at_the_limit() {
    let bomb = packed(&"0".repeat(50_000_000)).unwrap();
    assert!(bomb.len() < 100_000);
    assert_eq!(unpacked(&bomb, 1_000), None);
    let (archive, _) = of("a text");
    let archive = Archive { file: Digest::of_file(&bomb), bytes: bomb.len() as u64, ..archive };
    let folder = tempfile::tempdir().unwrap();
    let archives = Archives::in_folder(folder.path());
    archives.write(&archive, &bomb).unwrap();
    assert!(matches!(archives.read(&archive), Err(ArchiveFileError::Damaged(..))), "whatever its row says of its hash");
}

#[test]
fn values_are_removed_from_every_file_with_them_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let archives = Archives::in_folder(folder.path());
    let (first, bytes) = of("a text");
    let next = Archive { from: 32, to: 63, ..first.clone() };
    let without = Archive { kept: ArchiveContentState::Erased { at: first.at, policy: first.policy }, ..first.clone() };
    let other = Archive { thread: "Order:8".try_into().unwrap(), ..first.clone() };
    for archive in [&first, &next, &without, &other] {
        archives.write(archive, &bytes).unwrap();
    }
    let beside = |name: &str| archives.path(&first).with_file_name(name);
    let left = [
        "00000000000000000007-00000000000000000040.json.gz",
        ".00000000000000000031-00000000000000000031.json.gz.draft",
    ];
    let stays =
        ["00000000000000000000.json.gz", "notes.json.gz", ".00000000000000000032-00000000000000000063.json.gz.draft"];
    for name in left.iter().chain(&stays) {
        fs::write(beside(name), "values").unwrap();
    }
    archives.remove_values(&first).unwrap();
    archives.remove_values(&first).unwrap();
    assert!(!archives.path(&first).exists() && left.iter().all(|it| !beside(it).exists()));
    assert!([&next, &without, &other].iter().all(|it| archives.path(it).exists()));
    assert!(stays.iter().all(|it| beside(it).exists()));
}

#[test]
fn removing_values_from_a_missing_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let archives = Archives::in_folder(folder.path().join("archives"));
    let (archive, bytes) = of("a text");
    archives.write(&archive, &bytes).unwrap();
    fs::rename(folder.path().join("archives"), folder.path().join("away")).unwrap();
    archives.remove_values(&archive).unwrap_err();
}
