use serde_json::{Value, json};

use super::*;
use crate::policy::tests::policy;

fn values(hidden: &[Value]) -> RedactedValues {
    let mut gathered = RedactedValueSet::default();
    hidden.iter().for_each(|it| gathered.add(it));
    gathered.built()
}

#[test]
fn texts_and_numbers_that_are_long_enough_are_found_in_any_text_and_number() {
    let values = values(&[json!({"a": ["s3cr3t", {"b": 123_456}]}), json!("käse€1"), json!("4111111111111111")]);
    for text in ["s3cr3t", "it is s3cr3t.", "käse€1", "no 123456", "x4111111111111111x"] {
        assert!(values.find(text) && values.find_in(&json!(text)), "{text}");
    }
    for number in [json!(123_456), json!(9_123_456_i64), json!(123_456.5), json!(4_111_111_111_111_111_i64)] {
        assert!(values.find_in(&number), "{number}");
    }
    for other in [json!("S3CR3T"), json!("s3cr3"), json!(12_345), json!(null), json!(true), json!({}), json!("")] {
        assert!(!values.find_in(&other), "{other}");
    }
}

#[test]
fn what_is_shorter_than_the_least_is_not_looked_for() {
    let short =
        [json!("abcde"), json!(12_345), json!(true), json!(null), json!(""), json!([]), json!({"longer_key": 1})];
    assert!(values(&short).is_empty());
    assert!(!values(&[json!("äöüäöü")]).is_empty(), "characters are counted, not bytes");
}

#[test]
fn a_text_is_found_as_json_writes_it_too() {
    let values = values(&[json!("a\"b\nc\\d")]);
    assert!(values.find("a\"b\nc\\d"));
    assert!(values.find(&canonical(&json!({"copied": "a\"b\nc\\d"}))));
    assert!(!values.find("a\"b c\\d"));
}

#[test]
fn of_a_long_value_its_beginning_is_looked_for() {
    let long = "é".repeat(HIDDEN_CHARS_LOOKED_FOR + 40);
    let values = values(&[json!(long)]);
    assert!(values.find(&long));
    assert!(values.find(&"é".repeat(HIDDEN_CHARS_LOOKED_FOR)));
    assert!(!values.find(&"é".repeat(HIDDEN_CHARS_LOOKED_FOR - 1)));
}

#[test]
fn in_words_hidden_stands_in_the_place_of_each() {
    let policy = policy("[nodes.n]\n[redaction]\ndetect = [\"email\"]");
    let long = "L".repeat(HIDDEN_CHARS_LOOKED_FOR) + " and its end";
    let values = values(&[json!("s3cr3t"), json!("s3cr3t-longer"), json!(123_456), json!(long)]);
    let masked = |words: &str| values.masked(&policy, words).into_owned();
    assert_eq!(masked("pay s3cr3t, s3cr3t-longer and 123456"), "pay [hidden], [hidden] and [hidden]");
    assert_eq!(masked("ana@example.org knows s3cr3t"), "[email] knows [hidden]");
    assert_eq!(masked(&format!("it is {long}, I say")), "it is [hidden]", "how far the rest goes is not known");
    assert!(matches!(values.masked(&policy, "nothing é"), Cow::Borrowed("nothing é")));
}

#[test]
fn as_many_as_states_may_have_are_looked_for() {
    let many = |salt: usize| (0..10_000).map(move |it| json!(format!("{it:06}{salt}{}", "x".repeat(60)))).collect();
    let states: [Vec<Value>; 3] = [many(1), many(2), many(3)];
    let values = values(&states.map(Value::from));
    assert!(values.find(&format!("it is 0099992{}", "x".repeat(60))));
    assert!(!values.find(&format!("it is 0099994{}", "x".repeat(60))));
}

/// The naive implementation: removes every match, and everything after the beginning of a long value.
fn plainly(hidden: &[String], words: &str) -> String {
    let mut covered = vec![false; words.len()];
    for (at, _) in words.char_indices() {
        for value in hidden {
            let looked_for: String = value.chars().take(HIDDEN_CHARS_LOOKED_FOR).collect();
            if words[at..].starts_with(&looked_for) {
                let end = if looked_for == *value { at + value.len() } else { words.len() };
                covered[at..end].fill(true);
            }
        }
    }
    let left = words.bytes().zip(covered).map(|(byte, covered)| if covered { 0 } else { byte });
    String::from_utf8(left.filter(|it| *it != 0).collect()).unwrap()
}

proptest::proptest! {
    /// Values that stand in one another, overlap, and end at one place, long ones among them.
    #[test]
    fn nothing_of_what_is_hidden_is_left_however_values_lie_in_one_another(
        hidden in proptest::collection::vec("[ab]{6,70}|[aé]{6,9}|[ab]{0,2}aaaaaa", 1..12),
        words in "[abé]{0,200}",
    ) {
        let policy = policy("[nodes.n]");
        let masked = values(&[json!(hidden)]).masked(&policy, &words).into_owned();
        proptest::prop_assert_eq!(masked.replace("[hidden]", ""), plainly(&hidden, &words));
    }
}

#[test]
fn of_those_that_end_at_one_place_the_longest_goes() {
    let values = values(&[json!(["longer", "s3cr3t-longer", "t-longer"])]);
    assert_eq!(values.masked(&policy("[nodes.n]"), "a s3cr3t-longer b, longer"), "a [hidden] b, [hidden]");
}

#[test]
fn a_text_in_which_a_hundred_values_end_at_every_place_has_one_place_for_each() {
    let values = values(&[(HIDDEN_CHARS_MIN..=2 * HIDDEN_CHARS_LOOKED_FOR).map(|it| json!("a".repeat(it))).collect()]);
    let text = "a".repeat(16 * 1024);
    let places = values.built.as_ref().unwrap().places(&text);
    assert!(places.len() <= 2 * text.len(), "{}", places.len());
    assert_eq!(values.masked(&policy("[nodes.n]"), &text), "[hidden]");
}
