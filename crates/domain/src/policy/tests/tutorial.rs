//! The guide's way from an empty file: each step is understood, and judges as its table says.

use super::guide::{by_planner, quoted, rows, section, snippets};
use super::{is_committed, refused};
use crate::policy::{Judgement, Policy, PolicySource};

#[test]
fn each_step_from_an_empty_file_judges_as_its_table_says() {
    let (mut top, mut below) = (String::new(), String::new());
    let (mut steps, mut judged) = (0, 0);
    for step in section("## From an empty file").split("\n### ").skip(1) {
        top.push_str(&snippets(step, "toml top").concat());
        below.push_str(&snippets(step, "toml below").concat());
        let text = format!("{top}{below}");
        let source = PolicySource { text: text.clone(), ..PolicySource::default() };
        let policy = Policy::compile(&source).unwrap_or_else(|error| panic!("{error}\n{text}"));
        for (before, sent, outcome) in rows(step) {
            judged += 1;
            let told = by_planner(&policy, &before, &sent, &[]);
            match (outcome.split([':', ' ']).next(), &told) {
                (Some("commits"), _) => assert!(is_committed(&told), "{sent}: {told:?}"),
                (Some("held"), Judgement::Hold { reasons, .. }) => assert_eq!(reasons[0].text, quoted(outcome)[0]),
                (Some("rejected"), _) => {
                    let (told, said) = (refused(&told), quoted(outcome));
                    let place = said[1].trim_matches('"');
                    assert_eq!((told[0].0.as_str(), told[0].1.as_str(), told.len()), (said[0], place, 1), "{sent}");
                }
                (other, _) => panic!("{sent}: {other:?}, but {told:?}"),
            }
        }
        steps += 1;
    }
    assert_eq!((steps, judged), (10, 19));
}
