use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::Barrier;

use super::swap::FileSwapStep;
use super::*;

const SCHEMA: &[u8] = br#"{"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": true}"#;
const RULES: &[u8] = br#"{"monotonic_integer_paths": ["$.n"]}"#;

/// An allowed folder, and a folder beside it that is not allowed.
struct StateFileFixture {
    outer: tempfile::TempDir,
    inner: PathBuf,
    file: PathBuf,
}

fn place() -> StateFileFixture {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().canonicalize().unwrap();
    let inner = root.join("inner");
    fs::create_dir(&inner).unwrap();
    StateFileFixture { outer, file: inner.join("s.json"), inner }
}

impl StateFileFixture {
    fn holding(text: &str) -> Self {
        let place = place();
        fs::write(&place.file, text).unwrap();
        place
    }

    fn roots(&self) -> AllowedRoots {
        AllowedRoots::new([self.inner.clone()]).unwrap()
    }

    fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for folder in [self.outer.path(), &self.inner] {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|it| it.path().is_file()) {
                files.insert(entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap());
            }
        }
        files
    }

    fn commit(&self, before: PreviousContent<'_>, proposed: &str) -> Result<WrittenState, String> {
        self.commit_to(&self.file, before, proposed)
    }

    fn commit_to(&self, target: &Path, before: PreviousContent<'_>, proposed: &str) -> Result<WrittenState, String> {
        told(commit(&guard(), &self.roots(), &StateCommit { target, before, proposed: proposed.as_bytes() }))
    }
}

fn guard() -> StateGuard {
    StateGuard::new(SCHEMA, Some(RULES)).unwrap()
}

fn told(result: Result<WrittenState, StateFileError>) -> Result<WrittenState, String> {
    result.map_err(|refused| match refused {
        StateFileError::Blocked { found, .. } => {
            found.list.iter().map(|it| it.code.as_str()).collect::<Vec<_>>().join(", ")
        }
        StateFileError::Unsynced { .. } => "unsynced".to_owned(),
    })
}

fn failing_at(
    place: &StateFileFixture,
    before: PreviousContent<'_>,
    at: FileSwapStep,
) -> Result<WrittenState, StateFileError> {
    let mut fail = |step| if step == at { Err(io::Error::other("no space")) } else { Ok(()) };
    let edge = &mut FileSystemHooks { wait: LOCK_WAIT_MAX, before: &mut fail };
    commit_at(&guard(), &place.roots(), &StateCommit { target: &place.file, before, proposed: br#"{"n":2}"# }, edge)
}

#[test]
fn the_file_then_holds_the_canonical_text_for_its_owner_alone() {
    let place = StateFileFixture::holding("{ \"n\" : 1.0 }\n");
    let committed = place.commit(PreviousContent::Held(b"{\"n\":1}"), "{\"x\": 1e2, \"n\": 2}").unwrap();
    assert_eq!(place.files(), BTreeMap::from([("s.json".to_owned(), "{\"n\":2,\"x\":100}".to_owned())]));
    assert_eq!(fs::metadata(&place.file).unwrap().mode() & 0o7777, 0o600);
    assert_eq!((committed.bytes, &committed.path), (15, &place.file));
    assert_eq!(committed.previous.unwrap().text, "{\"n\":1}");
    assert_eq!(committed.state.proof(), guard().check(b"{\"n\":2,\"x\":100}").unwrap().proof());
}

#[test]
fn file_must_contain_the_checked_state() {
    let here = PreviousContent::Held(b"{\"n\":1}");
    for other in ["{\"n\":0}", "{\"n\":1,\"n\":1}", "{\"n\":1}{}", "", "x"] {
        let place = StateFileFixture::holding(other);
        assert_eq!(place.commit(here, "{\"n\":2}").unwrap_err(), "content_differs", "{other}");
        assert_eq!(place.files(), BTreeMap::from([("s.json".to_owned(), other.to_owned())]));
    }
    let huge = format!("{{\"n\":1}}{}", " ".repeat(BYTES_MAX));
    assert_eq!(StateFileFixture::holding(&huge).commit(here, "{\"n\":2}").unwrap_err(), "content_differs");
    assert_eq!(place().commit(here, "{\"n\":2}").unwrap_err(), "content_absent");
    for before in [PreviousContent::Nothing, PreviousContent::Elsewhere(b"{\"n\":1}")] {
        let there = StateFileFixture::holding("{\"n\":1}");
        assert_eq!(there.commit(before, "{\"n\":2}").unwrap_err(), "content_present");
        assert_eq!(there.files().len(), 1);
        place().commit(before, "{\"n\":2}").unwrap();
    }
}

#[test]
fn the_rules_hold_for_a_commit_and_for_a_first_state() {
    let place = StateFileFixture::holding("{\"n\":1}");
    assert_eq!(place.commit(PreviousContent::Held(b"{\"n\":1}"), "{\"n\":0}").unwrap_err(), "decreased");
    assert_eq!(place.commit(PreviousContent::Held(b"{\"n\":1}"), "{").unwrap_err(), "syntax");
    fs::remove_file(&place.file).unwrap();
    assert_eq!(place.commit(PreviousContent::Elsewhere(b"{\"n\":1}"), "{\"n\":0}").unwrap_err(), "decreased");
    assert_eq!(place.commit(PreviousContent::Nothing, "{}").unwrap_err(), "path_missing");
    assert_eq!(place.files(), BTreeMap::new());
}

#[test]
fn a_target_lies_below_a_root_however_it_is_spelt() {
    let place = place();
    let (outside, inner) = (place.outer.path().join("out.json"), &place.inner);
    fs::create_dir(inner.join("sub")).unwrap();
    symlink(&outside, inner.join("dangling.json")).unwrap();
    fs::write(place.outer.path().join("real.json"), "{}").unwrap();
    symlink(place.outer.path().join("real.json"), inner.join("link.json")).unwrap();
    symlink(place.outer.path(), inner.join("up")).unwrap();
    for (target, code) in [
        (outside, "outside_roots"),
        (inner.join("../out.json"), "outside_roots"),
        (inner.join("sub/../../out.json"), "outside_roots"),
        (inner.join("up/out.json"), "outside_roots"),
        (inner.join("link.json"), "outside_roots"),
        (place.outer.path().join("innermost.json"), "outside_roots"),
        (inner.join("dangling.json"), "link_broken"),
        (inner.join("missing/s.json"), "folder_missing"),
        (inner.join("s.txt"), "target_not_json"),
        (inner.join(".json"), "target_not_json"),
        (place.outer.path().join("x.txt"), "target_not_json, outside_roots"),
        ("inner/s.json".into(), "target_not_absolute"),
        ("".into(), "target_not_absolute"),
    ] {
        let told = place.commit_to(&target, PreviousContent::Nothing, "{\"n\":1}").unwrap_err();
        assert_eq!(told, code, "{}", target.display());
    }
    let untouched = ["link.json", "real.json"].map(|it| (it.to_owned(), "{}".to_owned()));
    assert_eq!(place.files(), BTreeMap::from(untouched));
    place.commit_to(&inner.join("sub/../s.json"), PreviousContent::Nothing, "{\"n\":1}").unwrap();
    assert!(place.file.exists());
}

#[test]
fn all_violations_are_listed_with_the_target_first() {
    let place = place();
    let both = place.commit_to(&place.inner.join("s.txt"), PreviousContent::Elsewhere(b"{\"n\":1}"), "{\"n\":0}");
    assert_eq!(both.unwrap_err(), "target_not_json, decreased");
    let none = commit(
        &guard(),
        &AllowedRoots::default(),
        &StateCommit { target: &place.file, before: PreviousContent::Nothing, proposed: b"{\"n\":1}" },
    );
    assert_eq!(told(none).unwrap_err(), "no_roots");
    assert_eq!(AllowedRoots::new(["inner".into()]).unwrap_err().path, Path::new("inner"));
    assert!(AllowedRoots::new(["".into()]).is_err());
}

#[test]
fn link_created_after_resolution_is_not_followed() {
    let place = place();
    let (sub, away) = (place.inner.join("sub"), place.outer.path().join("away"));
    fs::create_dir(&sub).unwrap();
    fs::create_dir(&away).unwrap();
    let mut swapped = |step| {
        if step == FileSwapStep::Open {
            fs::remove_dir(&sub).unwrap();
            symlink(&away, &sub).unwrap();
        }
        Ok(())
    };
    let edge = &mut FileSystemHooks { wait: LOCK_WAIT_MAX, before: &mut swapped };
    let request = StateCommit { target: &sub.join("s.json"), before: PreviousContent::Nothing, proposed: b"{\"n\":1}" };
    assert_eq!(told(commit_at(&guard(), &place.roots(), &request, edge)).unwrap_err(), "write_failed");
    assert_eq!(fs::read_dir(&away).unwrap().count(), 0);
}

#[test]
fn link_in_place_of_the_file_is_not_read() {
    let place = StateFileFixture::holding("{\"n\":1}");
    let away = place.outer.path().join("away.json");
    fs::write(&away, "{\"n\":1}").unwrap();
    let mut swapped = |step| {
        if step == FileSwapStep::Open {
            fs::remove_file(&place.file).unwrap();
            symlink(&away, &place.file).unwrap();
        }
        Ok(())
    };
    let edge = &mut FileSystemHooks { wait: LOCK_WAIT_MAX, before: &mut swapped };
    let request =
        StateCommit { target: &place.file, before: PreviousContent::Held(b"{\"n\":1}"), proposed: b"{\"n\":2}" };
    assert_eq!(told(commit_at(&guard(), &place.roots(), &request, edge)).unwrap_err(), "target_not_a_file");
    assert_eq!(fs::read_to_string(&away).unwrap(), "{\"n\":1}");
    assert!(place.file.is_symlink());
}

#[test]
fn no_draft_and_no_change_is_left_by_any_failure() {
    for step in
        [FileSwapStep::Open, FileSwapStep::Compare, FileSwapStep::Write, FileSwapStep::Sync, FileSwapStep::Replace]
    {
        let full = StateFileFixture::holding("{\"n\":1}");
        let refused = failing_at(&full, PreviousContent::Held(b"{\"n\":1}"), step).unwrap_err();
        let StateFileError::Blocked { cause: Some(cause), .. } = &refused else { panic!("{step:?}: {refused:?}") };
        assert_eq!(cause.to_string(), "no space");
        assert_eq!(told(Err(refused)).unwrap_err(), "write_failed");
        assert_eq!(full.files(), BTreeMap::from([("s.json".to_owned(), "{\"n\":1}".to_owned())]), "{step:?}");
        let empty = place();
        assert!(failing_at(&empty, PreviousContent::Nothing, step).is_err());
        assert_eq!(empty.files(), BTreeMap::new(), "{step:?}");
    }
}

#[test]
fn failed_sync_differs_from_nothing_written() {
    for before in [PreviousContent::Held(b"{\"n\":1}"), PreviousContent::Nothing] {
        let place = if before == PreviousContent::Nothing { place() } else { StateFileFixture::holding("{\"n\":1}") };
        let refused = failing_at(&place, before, FileSwapStep::SyncFolder).unwrap_err();
        assert!(matches!(&refused, StateFileError::Unsynced { committed, .. } if committed.bytes == 7), "{refused:?}");
        assert_eq!(place.files(), BTreeMap::from([("s.json".to_owned(), "{\"n\":2}".to_owned())]));
    }
}

#[test]
fn draft_of_a_killed_process_is_replaced() {
    let place = StateFileFixture::holding("{\"n\":1}");
    fs::write(place.inner.join(".s.json.draft"), "half").unwrap();
    place.commit(PreviousContent::Held(b"{\"n\":1}"), "{\"n\":2}").unwrap();
    assert_eq!(place.files(), BTreeMap::from([("s.json".to_owned(), "{\"n\":2}".to_owned())]));
}

#[test]
fn the_folder_is_locked_from_the_comparison_until_it_is_synced() {
    let place = StateFileFixture::holding("{\"n\":1}");
    let mut seen = Vec::new();
    let mut look = |step| {
        let free = fs::File::open(&place.inner).unwrap().try_lock().is_ok();
        seen.push((step, free));
        Ok(())
    };
    let request =
        StateCommit { target: &place.file, before: PreviousContent::Held(b"{\"n\":1}"), proposed: b"{\"n\":2}" };
    let edge = &mut FileSystemHooks { wait: LOCK_WAIT_MAX, before: &mut look };
    commit_at(&guard(), &place.roots(), &request, edge).unwrap();
    let steps = [
        FileSwapStep::Compare,
        FileSwapStep::Write,
        FileSwapStep::Sync,
        FileSwapStep::Replace,
        FileSwapStep::SyncFolder,
    ]
    .map(|it| (it, false));
    assert_eq!(seen, [&[(FileSwapStep::Open, true)], &steps[..]].concat());
    fs::File::open(&place.inner).unwrap().try_lock().unwrap();
}

#[test]
fn one_of_many_commits_on_one_state_succeeds() {
    const COMMITTERS: usize = 16;
    for before in [PreviousContent::Held(b"{\"n\":1}"), PreviousContent::Nothing] {
        let place = if before == PreviousContent::Nothing { place() } else { StateFileFixture::holding("{\"n\":1}") };
        let start = Barrier::new(COMMITTERS);
        let results: Vec<_> = std::thread::scope(|scope| {
            let run = |at: usize| {
                let (place, start) = (&place, &start);
                scope.spawn(move || {
                    start.wait();
                    place.commit(before, &format!("{{\"n\":{}}}", at + 2))
                })
            };
            let running: Vec<_> = (0..COMMITTERS).map(run).collect();
            running.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        let won: Vec<_> = won.into_iter().map(Result::unwrap).collect();
        assert_eq!(won.len(), 1, "{lost:?}");
        let code = if before == PreviousContent::Nothing { "content_present" } else { "content_differs" };
        assert!(lost.iter().all(|it| it.as_ref().unwrap_err() == code), "{lost:?}");
        assert_eq!(place.files(), BTreeMap::from([("s.json".to_owned(), won[0].state.text.clone())]));
    }
}

#[test]
fn file_created_without_the_lock_is_not_replaced() {
    let place = place();
    let mut make = |step| match step {
        FileSwapStep::Replace => fs::write(&place.file, "theirs"),
        _ => Ok(()),
    };
    let request = StateCommit { target: &place.file, before: PreviousContent::Nothing, proposed: b"{\"n\":1}" };
    let edge = &mut FileSystemHooks { wait: LOCK_WAIT_MAX, before: &mut make };
    assert_eq!(told(commit_at(&guard(), &place.roots(), &request, edge)).unwrap_err(), "content_present");
    assert_eq!(place.files(), BTreeMap::from([("s.json".to_owned(), "theirs".to_owned())]));
}

#[test]
fn root_is_resolved_once() {
    let place = place();
    let (root, other) = (place.outer.path().join("root"), place.outer.path().join("other"));
    fs::create_dir(&other).unwrap();
    symlink(&place.inner, &root).unwrap();
    let roots = AllowedRoots::new([root.clone(), place.outer.path().join("nowhere")]).unwrap();
    let run = |target: &Path| {
        told(commit(
            &guard(),
            &roots,
            &StateCommit { target, before: PreviousContent::Nothing, proposed: b"{\"n\":1}" },
        ))
    };
    assert_eq!(run(&root.join("s.json")).unwrap().path, place.file);
    fs::remove_file(&root).unwrap();
    symlink(&other, &root).unwrap();
    assert_eq!(run(&root.join("s.json")).unwrap_err(), "outside_roots");
    // The root is a file, so it allows nothing.
    let itself = AllowedRoots::new([place.file.clone()]).unwrap();
    let request =
        StateCommit { target: &place.file, before: PreviousContent::Held(b"{\"n\":1}"), proposed: b"{\"n\":2}" };
    assert_eq!(told(commit(&guard(), &itself, &request)).unwrap_err(), "outside_roots");
}

#[test]
fn held_lock_times_out() {
    let place = place();
    let kept = fs::File::open(&place.inner).unwrap();
    kept.lock().unwrap();
    let request = StateCommit { target: &place.file, before: PreviousContent::Nothing, proposed: b"{\"n\":1}" };
    let edge = &mut FileSystemHooks { wait: Duration::from_millis(1), before: &mut |_| Ok(()) };
    assert_eq!(told(commit_at(&guard(), &place.roots(), &request, edge)).unwrap_err(), "folder_busy");
    assert_eq!(place.files(), BTreeMap::new());
    kept.unlock().unwrap();
    place.commit(PreviousContent::Nothing, "{\"n\":1}").unwrap();
}

#[test]
fn pipe_blocks_no_commit_and_is_not_replaced() {
    let place = place();
    fs::create_dir(&place.file).unwrap();
    for before in [PreviousContent::Nothing, PreviousContent::Held(b"{\"n\":1}")] {
        assert_eq!(place.commit(before, "{\"n\":1}").unwrap_err(), "target_not_a_file");
    }
    let pipe = place.inner.join("pipe.json");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    for before in [PreviousContent::Nothing, PreviousContent::Held(b"{\"n\":1}")] {
        assert_eq!(place.commit_to(&pipe, before, "{\"n\":1}").unwrap_err(), "target_not_a_file");
    }
}

#[test]
fn a_state_that_could_not_be_read_again_is_not_written() {
    let place = place();
    let numbers = vec!["1e20"; BYTES_MAX / 8].join(",");
    let told = place.commit(PreviousContent::Nothing, &format!("{{\"n\":1,\"x\":[{numbers}]}}"));
    assert_eq!(told.unwrap_err(), "too_large");
    assert_eq!(place.files(), BTreeMap::new());
}
