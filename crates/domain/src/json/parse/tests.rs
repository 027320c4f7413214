use proptest::prelude::*;
use serde_json::{Value, json};

use super::{DEPTH_CEILING, JsonCode, JsonError, ParseLimits, parse};
use crate::json::canonical::canonical;
use crate::json::pointer::Pointer;
use crate::json::samples::any_value;

fn read(text: impl AsRef<[u8]>) -> Result<Value, JsonError> {
    parse(text.as_ref(), &ParseLimits::default())
}

#[track_caller]
fn refused(text: impl AsRef<[u8]>, code: JsonCode, pointer: &str, offset: usize) {
    let pointer = Pointer::try_from(pointer).unwrap();
    assert_eq!(read(text), Err(JsonError { code, pointer, offset: Some(offset) }));
}

#[track_caller]
fn code_of(text: impl AsRef<[u8]>, code: JsonCode) {
    assert_eq!(read(text.as_ref()).map_err(|it| it.code), Err(code), "{:?}", String::from_utf8_lossy(text.as_ref()));
}

#[test]
fn a_document_is_read_as_it_is() {
    let text =
        " {\"a\" : [1, -2.5, \"x\\n\\u00e9\\ud83d\\ude00\", true, false, null, {}, []], \"\" : {\"/\": 0}}\r\n\t";
    assert_eq!(read(text).unwrap(), json!({"a": [1, -2.5, "x\né😀", true, false, null, {}, []], "": {"/": 0}}));
}

#[test]
fn nothing_is_empty() {
    for text in ["", " ", "\r\n\t "] {
        assert_eq!(read(text), Err(JsonError { code: JsonCode::Empty, pointer: Pointer::root(), offset: None }));
    }
}

#[test]
fn a_duplicate_key_is_refused_with_its_offset() {
    refused(r#"{"a":1,"a":1}"#, JsonCode::DuplicateKey, "/a", 7);
    refused(r#"{"x":[0,{"a~/b":1,"c":2,"a~\/b":3}]}"#, JsonCode::DuplicateKey, "/x/1/a~0~1b", 24);
    refused(r#"{"":1,"":2}"#, JsonCode::DuplicateKey, "/", 6);
    refused(r#"{"é":1,"é":2}"#, JsonCode::DuplicateKey, "/é", 8);
}

#[test]
fn keys_that_are_equal_after_nfc_are_refused_in_either_order() {
    for (one, other) in [
        ("\u{e9}", "e\u{301}"),
        ("\u{ac00}", "\u{1100}\u{1161}"),
        ("\u{212b}", "A\u{30a}"),
        ("q\u{307}\u{323}", "q\u{323}\u{307}"),
        ("K", "\u{212a}"),
        (";", "\u{37e}"),
        ("\u{fb33}", "\u{5d3}\u{5bc}"),
    ] {
        code_of(format!("{{\"{one}\":1,\"x\":0,\"{other}\":2}}"), JsonCode::DuplicateKey);
        code_of(format!("{{\"{other}\":1,\"x\":0,\"{one}\":2}}"), JsonCode::DuplicateKey);
    }
    refused("{\"e\u{301}\":{},\"\u{e9}\":1}", JsonCode::DuplicateKey, "/é", 10);
}

#[test]
fn keys_that_differ_after_nfc_are_two_and_stay_as_they_are() {
    for text in ["{\"ﬁ\":1,\"fi\":2}", "[{\"\u{e9}\":1},{\"e\u{301}\":2}]", "{\"A\":{\"a\":1},\"a\":{\"A\":2}}"] {
        assert!(read(text).is_ok(), "{text}");
    }
    assert_eq!(read("{\"e\u{301}\":\"e\u{301}\"}").unwrap(), json!({"e\u{301}": "e\u{301}"}));
}

#[test]
fn infinities_and_nan_have_a_code_of_their_own() {
    refused("NaN", JsonCode::NotANumber, "", 0);
    refused("[1, Infinity]", JsonCode::NotANumber, "/1", 4);
    refused("{\"a\":-Infinity}", JsonCode::NotANumber, "/a", 5);
    for text in ["nan", "Nan", "Inf", "-Inf", "-inf", "infinity", "-", "I", "N"] {
        code_of(text, JsonCode::Syntax);
    }
}

#[test]
fn a_number_that_no_double_says_back_is_refused_where_it_begins() {
    refused("12345678901234567890", JsonCode::NumberNotExact, "", 0);
    refused("{\"a\":[0, 0.1000000000000000055]}", JsonCode::NumberNotExact, "/a/1", 9);
    refused("{\"a\":{\"b\":-1e400}}", JsonCode::NumberNotExact, "/a/b", 10);
}

#[test]
fn numbers_have_the_grammar_of_json() {
    for text in [
        "+1", "01", "-01", "00", ".5", "1.", "1.e1", "1e", "1e+", "1e-", "1E", "0x10", "1_000", "- 1", "--1", "1.2.3",
        "1e1.5", "1 2", "1a", "١", "1e1e1",
    ] {
        code_of(text, JsonCode::Syntax);
    }
    for (text, value) in [
        ("0", json!(0)),
        ("-0", json!(0)),
        ("0e0", json!(0)),
        ("1E+1", json!(10)),
        ("999999999999999", json!(999_999_999_999_999_i64)),
    ] {
        assert_eq!(read(text).unwrap(), value, "{text}");
    }
}

#[test]
fn halves_of_surrogate_pairs_are_refused_where_they_begin() {
    refused(r#""\ud800""#, JsonCode::Encoding, "", 1);
    refused(r#"["a\udc00"]"#, JsonCode::Encoding, "/0", 3);
    refused(r#"{"a":"\ud83dx"}"#, JsonCode::Encoding, "/a", 6);
    refused(r#"{"a":{"\udfff":1}}"#, JsonCode::Encoding, "/a", 7);
    for text in [r#""\ud83d\ud83d\ude00""#, r#""\ude00\ud83d""#, r#""\ud83d\n""#, r#""\ud83d\u0041""#] {
        code_of(text, JsonCode::Encoding);
    }
}

#[test]
fn what_is_not_utf_8_is_refused_at_its_first_byte() {
    refused(b"{\"a\":[\"x\", \"\xff\"]}", JsonCode::Encoding, "/a/1", 12);
    refused(b"\xff\xfe1\x00", JsonCode::Encoding, "", 0);
    refused(b"{}\x80", JsonCode::Encoding, "", 2);
    for text in
        [&b"\"\xc0\xaf\""[..], b"\"\xed\xa0\x80\"", b"\"\xf4\x90\x80\x80\"", b"\"\xe2\x82\"", b"{\"\x80\":1}", b" \x80"]
    {
        code_of(text, JsonCode::Encoding);
    }
}

#[test]
fn what_is_wrong_before_a_byte_that_is_not_utf_8_comes_first() {
    refused(b"{\"a\":1,\"a\":\"\xff\"}", JsonCode::DuplicateKey, "/a", 7);
    refused(b"[1 2, \"\xff\"]", JsonCode::Syntax, "", 3);
}

#[test]
fn a_byte_order_mark_is_not_json() {
    refused("\u{feff}{}", JsonCode::Syntax, "", 0);
}

#[test]
fn nothing_may_follow_the_value() {
    refused("{} x", JsonCode::Syntax, "", 3);
    refused("1 2", JsonCode::Syntax, "", 2);
    refused("{\"a\":1}\n{\"a\":2}", JsonCode::Syntax, "", 8);
    refused("1\0", JsonCode::Syntax, "", 1);
}

#[test]
fn control_characters_in_strings_are_refused_wherever_they_stand() {
    for control in 0_u8..0x20 {
        for before in 0..20 {
            let text = [&b"\""[..], "x".repeat(before).as_bytes(), &[control], b"yyyyyyyyyy\""].concat();
            refused(text, JsonCode::Syntax, "", before + 1);
        }
    }
}

#[test]
fn quotes_and_backslashes_are_found_wherever_they_stand() {
    for before in 0..20 {
        for filler in ["x", "é", "!", "#", "[", "]", "\u{7f}", "\u{10ffff}"] {
            let plain = filler.repeat(before);
            assert_eq!(
                read(format!("[\"{plain}\",\"\\\\{plain}\\\"{plain}\"]")).unwrap(),
                json!([plain, format!("\\{plain}\"{plain}")])
            );
        }
    }
}

#[test]
fn every_escape_but_those_of_json_is_refused() {
    assert_eq!(read(r#""\"\\\/\b\f\n\r\t\u0041\u00E9\uFFFF""#).unwrap(), json!("\"\\/\u{8}\u{c}\n\r\tAé\u{ffff}"));
    for letter in (0_u8..0x80).filter(|it| !b"\"\\/bfnrtu".contains(it)) {
        code_of([b'"', b'\\', letter, b'"'], JsonCode::Syntax);
    }
    for text in
        [r#""\u+041""#, r#""\u00""#, r#""\u00g0""#, r#""\U0041""#, "\"\\u00", "\"\\", "\"\\u", r#""\u 041""#, "\"\\é\""]
    {
        code_of(text, JsonCode::Syntax);
    }
}

#[test]
fn the_structure_is_that_of_json() {
    refused("[1,]", JsonCode::Syntax, "/1", 3);
    refused("{\"a\":1,}", JsonCode::Syntax, "", 7);
    refused("{\"a\" 1}", JsonCode::Syntax, "/a", 5);
    refused("{\"a\":}", JsonCode::Syntax, "/a", 5);
    refused("{\"a\":1", JsonCode::Syntax, "", 6);
    for text in [
        "[",
        "{",
        "]",
        "}",
        "[1}",
        "{\"a\":1]",
        "[1 2]",
        "{a:1}",
        "{1:1}",
        "{null:1}",
        "'a'",
        "[1] // x",
        "/**/1",
        "True",
        "nul",
        "nulll",
        "tru",
        "falsy",
        ",",
        ":",
        "[,1]",
        "{,}",
        "[1,,2]",
        "\"abc",
        "{\"a\"",
        "\u{a0}1",
        "\u{c}1",
        "\u{b}1",
        "{\"a\":1 \"b\":2}",
    ] {
        code_of(text, JsonCode::Syntax);
    }
}

#[test]
fn as_many_levels_as_allowed_and_not_one_more() {
    let nest = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let objects = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    assert!(read(nest(64)).is_ok() && read(objects(64)).is_ok());
    refused(nest(65), JsonCode::TooDeep, &"/0".repeat(64), 64);
    refused(objects(65), JsonCode::TooDeep, &"/a".repeat(64), 64 * 5);
    refused("[".repeat(100_000), JsonCode::TooDeep, &"/0".repeat(64), 64);
    let deep = ParseLimits { depth_max: usize::MAX, ..ParseLimits::default() };
    assert!(parse(nest(DEPTH_CEILING).as_bytes(), &deep).is_ok());
    let error = parse(nest(DEPTH_CEILING + 1).as_bytes(), &deep).unwrap_err();
    assert_eq!(error.code, JsonCode::TooDeep, "no configuration may exhaust the stack");
    assert!(parse(b"1", &ParseLimits { depth_max: 0, ..ParseLimits::default() }).is_ok());
    assert!(parse(b"[]", &ParseLimits { depth_max: 0, ..ParseLimits::default() }).is_err());
}

#[test]
fn as_many_bytes_as_allowed_and_not_one_more() {
    let limits = ParseLimits { bytes_max: 7, ..ParseLimits::default() };
    assert!(parse(b"\"12345\"", &limits).is_ok());
    let error = JsonError { code: JsonCode::TooLarge, pointer: Pointer::root(), offset: None };
    assert_eq!(parse(b"\"12345\" ", &limits), Err(error));
}

#[test]
fn refusals_do_not_repeat_what_was_sent() {
    let error = read(r#"{"secret":"x","secret":"y"}"#).unwrap_err();
    assert!(!error.to_string().contains("secret"));
}

/// `serde_json` has several forms of one number, so numbers are compared elsewhere.
fn without_numbers(value: Value) -> Value {
    match value {
        Value::Number(_) => json!(0),
        Value::Array(items) => items.into_iter().map(without_numbers).collect(),
        Value::Object(members) => members.into_iter().map(|(key, it)| (key, without_numbers(it))).collect(),
        other => other,
    }
}

proptest! {
    #[test]
    fn what_is_accepted_is_what_serde_json_accepts(value in any_value(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = serde_json::to_vec(&value).unwrap();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(ours) = read(&text) {
            let theirs: Value = serde_json::from_slice(&text).unwrap();
            prop_assert_eq!(without_numbers(ours), without_numbers(theirs));
        } else if let Ok(theirs) = serde_json::from_slice::<Value>(&text) {
            let code = read(&text).unwrap_err().code;
            prop_assert!(matches!(code, JsonCode::DuplicateKey | JsonCode::NumberNotExact | JsonCode::TooDeep), "{:?} {}", code, theirs);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Err(error) = read(&bytes) {
            prop_assert!(error.offset.is_none_or(|it| it <= bytes.len()));
        }
    }

    #[test]
    fn no_text_made_of_json_makes_it_panic(text in "[\\[\\]{}:,\"\\\\ue019.+\\-ntfNI dD8c é\u{301}]{0,40}") {
        if let Err(error) = read(&text) {
            prop_assert!(error.offset.is_none_or(|it| it <= text.len()));
        }
    }

    #[test]
    fn a_cut_off_document_is_refused(value in any_value(), at in any::<prop::sample::Index>()) {
        let text = canonical(&json!([value]));
        prop_assert!(read(&text.as_bytes()[..at.index(text.len())]).is_err());
    }
}
