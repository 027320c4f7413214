//! Fuzz targets, run on their seeds and on some thousand mutations of them. libFuzzer finds more, and these tests do
//! not need it. They run the same functions, so that the functions stay correct.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "fuzz/accidents.rs"]
mod accidents;
#[path = "fuzz/lists.rs"]
mod lists;
#[path = "../fuzz/src/lib.rs"]
mod targets;
#[path = "fuzz/words.rs"]
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use accidents::MutatedInputs;

type FuzzTarget = fn(&[u8]);

/// Every target: its name, what it checks, and how many accidents happen to its seeds.
const TARGETS: [(&str, FuzzTarget, usize); 8] = [
    ("json", targets::json::check, 20_000),
    ("places", targets::places::check, 20_000),
    ("patches", targets::patches::check, 10_000),
    ("differences", targets::differences::check, 10_000),
    ("policies", targets::policies::check, 500),
    ("judgements", targets::judgements::check, 2_000),
    ("joins", targets::joins::check, 5_000),
    ("episodes", targets::episodes::check, 1_000),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = folder().join("seeds").join(target);
    names(&folder).iter().map(|it| fs::read(folder.join(it)).unwrap()).collect()
}

/// Runs a target on its seeds and on mutations. A panic is reported together with the input.
fn run(target: &str) {
    let (_, check, accidents) = TARGETS.into_iter().find(|it| it.0 == target).unwrap();
    let seeds = seeds(target);
    assert!(seeds.len() > 4, "{target} has seeds");
    let try_it = |input: &[u8]| {
        let told = std::panic::catch_unwind(|| check(input));
        assert!(told.is_ok(), "{target} breaks on {:?}", input.escape_ascii().to_string());
    };
    seeds.iter().for_each(|it| try_it(it));
    MutatedInputs::new(&seeds).take(accidents).for_each(|it| try_it(&it));
}

#[test]
fn parsed_json_equals_that_of_other_parsers_or_is_refused() {
    run("json");
}

#[test]
fn pointers_and_patterns_agree_with_an_independent_reading() {
    run("places");
}

#[test]
fn patched_state_stays_within_its_limits_and_names() {
    run("patches");
}

#[test]
fn applied_difference_gives_the_second_value() {
    run("differences");
}

#[test]
fn policy_is_refused_at_a_position_or_has_one_meaning() {
    run("policies");
}

#[test]
fn judgements_hold_the_promises() {
    run("judgements");
}

#[test]
fn joins_hold_their_promises() {
    run("joins");
}

#[test]
fn only_the_unchanged_folder_of_a_run_verifies() {
    run("episodes");
}

#[test]
fn every_target_is_there_for_libfuzzer_too() {
    let folder = folder();
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let all: BTreeSet<_> = TARGETS.iter().map(|it| it.0.to_owned()).collect();
    assert_eq!(names(&folder.join("seeds")), all);
    assert_eq!(names(&folder.join("targets")), all.iter().map(|it| format!("{it}.rs")).collect());
    for name in &all {
        let target = fs::read_to_string(folder.join(format!("targets/{name}.rs"))).unwrap();
        assert!(target.contains(&format!("countersign_fuzz::{name}::check(text)")), "{target}");
        assert!(manifest.contains(&format!("path = \"targets/{name}.rs\"")), "{name}");
    }
}
