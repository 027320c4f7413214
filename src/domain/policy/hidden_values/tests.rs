use serde_json::{Value, json};

use super::super::tests::policy;
use super::*;

fn values(hidden: &[Value]) -> HiddenValues {
    let mut gathered = Gathered::default();
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
