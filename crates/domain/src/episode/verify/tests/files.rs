//! Tests of the files of a folder and its manifest.

use super::*;

#[test]
fn every_flipped_byte_of_a_file_is_found() {
    let good = folder(happened("ok"));
    for (name, content) in files(&good).into_iter().filter(|it| it.0 != "manifest.json") {
        for bad in flipped(&content).step_by(5) {
            let mut folder = good.clone();
            *bytes(&mut folder, &name) = bad;
            assert!(codes(&folder).contains(&"hash"), "{name}");
        }
    }
}

#[test]
fn truncated_removed_and_added_files_are_found() {
    let good = folder(happened("ok"));
    for file in ["events.jsonl", "learn.jsonl", "state.json", "summary.json", "final.json"] {
        let mut cut = good.clone();
        let bytes = bytes(&mut cut, file);
        bytes.truncate(bytes.len() / 2);
        let found = codes(&cut);
        assert!(found.contains(&"size") && found.contains(&"hash"), "{file}: {found:?}");
        let mut dropped = good.clone();
        dropped.entries.retain(|it| it.0 != file);
        assert!(codes(&dropped).contains(&"missing"), "{file}");
    }
    let mut added = good.clone();
    added.entries.push(("more.json".to_owned(), FileContent::Bytes(b"{}".to_vec())));
    assert_eq!(codes(&added), ["unexpected"]);
    let mut bare = good.clone();
    bare.entries.retain(|it| it.0 != "manifest.json");
    assert_eq!(codes(&bare), ["manifest_missing"]);
    assert_eq!(codes(&Folder::default()), ["manifest_missing"]);
}

#[test]
fn path_traversal_is_found_in_every_name() {
    let good = folder(happened("ok"));
    for name in ["../state.json", "/etc/passwd", "a/b", "..", ".", ".hidden", "a\\b", "a\nb", "ünder", "", "a.", "C:x"]
    {
        let mut named = good.clone();
        edit(&mut named, "manifest.json", |it| {
            let entry = json!({"name": name, "sha256": Digest::of_file(b""), "size_bytes": 0, "kind": "other"});
            it["files"].as_array_mut().unwrap().push(entry);
        });
        assert!(codes(&named).contains(&"name"), "{name:?}: {:?}", codes(&named));
        let mut there = good.clone();
        there.entries.push((name.to_owned(), FileContent::Bytes(Vec::new())));
        assert!(codes(&there).contains(&"name"), "{name:?}");
    }
}

#[test]
fn two_names_for_one_file_are_found() {
    let good = folder(happened("ok"));
    for name in ["state.json", "State.json", "MANIFEST.json"] {
        let mut twice = good.clone();
        twice.entries.push((name.to_owned(), FileContent::Bytes(b"{}".to_vec())));
        assert!(codes(&twice).contains(&"name_twice"), "{name}");
        let mut named = good.clone();
        edit(&mut named, "manifest.json", |it| {
            let mut entry = it["files"][0].clone();
            entry["name"] = name.into();
            it["files"].as_array_mut().unwrap().push(entry);
        });
        assert!(codes(&named).contains(&"name_twice"), "{name}");
    }
}

#[test]
fn special_file_is_found_and_not_read() {
    for (content, code) in [(FileContent::NotAFile, "not_a_file"), (FileContent::TooLong, "too_long")] {
        let mut linked = folder(happened("ok"));
        linked.entries.iter_mut().find(|it| it.0 == "state.json").unwrap().1 = content;
        assert_eq!(codes(&linked), [code]);
    }
}

#[test]
fn a_file_under_another_kind_is_found() {
    let mut wrong = folder(happened("ok"));
    edit(&mut wrong, "manifest.json", |it| it["files"][0]["kind"] = "summary".into());
    assert_eq!(codes(&wrong), ["kind"]);
    let mut itself = folder(happened("ok"));
    edit(&mut itself, "manifest.json", |it| it["files"][0]["name"] = "manifest.json".into());
    assert!(codes(&itself).contains(&"kind"));
    let mut rightly = folder(happened("ok"));
    edit(&mut rightly, "manifest.json", |it| {
        let entry =
            json!({"name": "manifest.json", "kind": "manifest", "sha256": Digest::of_file(b""), "size_bytes": 0});
        it["files"].as_array_mut().unwrap().push(entry);
    });
    assert!(codes(&rightly).contains(&"kind"), "a manifest cannot have its own hash, whatever it calls itself");
}

#[test]
fn manifest_without_a_required_file_is_found() {
    for file in ["events.jsonl", "state.json"] {
        let mut less = folder(happened("ok"));
        edit(&mut less, "manifest.json", |it| it["files"].as_array_mut().unwrap().retain(|it| it["name"] != file));
        less.entries.retain(|it| it.0 != file);
        assert!(codes(&less).contains(&"missing"), "{file}");
    }
    let mut other = folder(happened("ok"));
    edit(&mut other, "manifest.json", |it| it["schema_version"] = "manifest/2.0".into());
    assert_eq!(codes(&other), ["manifest_malformed"]);
}

#[test]
fn each_invalid_name_is_found() {
    let long = "a".repeat(129);
    for name in [long.as_str(), "a.", ".a", "-a", "a b", "a/b"] {
        let mut there = folder(happened("ok"));
        there.entries.push((name.to_owned(), FileContent::Bytes(Vec::new())));
        assert!(codes(&there).contains(&"name"), "{name:?}");
    }
    let mut fits = folder(happened("ok"));
    fits.entries.push(("a".repeat(128), FileContent::Bytes(Vec::new())));
    assert_eq!(codes(&fits), ["unexpected"]);
}

#[test]
fn manifest_with_too_many_files_is_refused() {
    let with = |count: usize| {
        let mut many = folder(happened("ok"));
        edit(&mut many, "manifest.json", |it| {
            let entry = |at: usize| json!({"name": format!("f{at}"), "sha256": Digest::of_file(b""), "size_bytes": 0, "kind": "o"});
            it["files"].as_array_mut().unwrap().extend((0..count).map(entry));
        });
        codes(&many)
    };
    assert!(with(manifest::FILES_MAX - 5).iter().all(|it| *it == "missing"));
    assert_eq!(with(manifest::FILES_MAX - 4), ["manifest_malformed"]);
}
