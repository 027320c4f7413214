use proptest::prelude::*;
use serde_json::{Value, json};

use super::{INTEGER_MAX, exact, normalise, number};

/// A decimal without sign, point, exponent and zeros at its ends, and where its point is: on texts, so
/// that it shares nothing with what it checks.
fn plain(text: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) =
        mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    let digits = format!("{whole}{fraction}");
    let point = i64::try_from(whole.len()).unwrap() + exponent.parse::<i64>().unwrap();
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let significant = digits.trim_matches('0').to_owned();
    if significant.is_empty() {
        return (false, significant, 0);
    }
    (text.starts_with('-'), significant, point - i64::try_from(leading).unwrap())
}

/// `{:e}` would not do: where two shortest decimals are equally near, it does not take the even one.
fn reference(text: &str) -> Option<f64> {
    let double: f64 = text.parse().unwrap();
    (double.is_finite() && plain(ryu_js::Buffer::new().format_finite(double)) == plain(text)).then_some(double)
}

#[test]
fn equal_numbers_are_one_number() {
    for (text, same) in [("1.0", "1"), ("-0", "0"), ("-0.0e7", "0"), ("1e2", "100"), ("0.10", "1E-1"), ("12e-1", "1.2")]
    {
        assert_eq!(exact(text).unwrap(), exact(same).unwrap(), "{text}");
    }
}

#[test]
fn integers_a_double_holds_are_integers() {
    for text in ["9007199254740991", "-9007199254740991", "900719925474099100e-2", "9007199254740991.0"] {
        assert!(exact(text).unwrap().is_i64(), "{text}");
    }
    for text in ["9007199254740992", "-9007199254740992", "1e16", "0.5"] {
        assert!(exact(text).unwrap().is_f64(), "{text}");
    }
}

#[test]
fn a_decimal_that_no_double_says_back_is_refused() {
    for text in [
        "12345678901234567890",
        "9007199254740993",
        "0.1000000000000000055",
        "0.1000000000000000000000000000000000000001",
        "10000000000000000000000000000000000000001",
        "1e400",
        "-1e400",
        "1e-400",
        "1.7976931348623158e308",
        "4.9e-324",
        "2e-324",
        "1e999999999999999999999999999999",
        "1e-999999999999999999999999999999",
        "1e18446744073709551616",
        "1e-18446744073709551615",
    ] {
        assert_eq!(exact(text), None, "{text}");
    }
}

/// ECMAScript's rule, and so RFC 8785's; the canonical form of the other would be another decimal.
#[test]
fn of_two_shortest_decimals_as_near_only_the_even_one_is_accepted() {
    assert_eq!("600000000000000.2".parse::<f64>(), "600000000000000.3".parse());
    assert_eq!(exact("600000000000000.2"), number(600_000_000_000_000.0 + 0.25));
    assert_eq!(exact("600000000000000.3"), None);
    assert_eq!(exact("600000000000000.25"), None);
}

#[test]
fn long_runs_of_zeros_cost_nothing_and_change_nothing() {
    let zeros = "0".repeat(100_000);
    assert_eq!(exact(&format!("1.{zeros}")), exact("1"));
    assert_eq!(exact(&format!("1{zeros}e-100000")), exact("1"));
    assert_eq!(exact(&format!("0.{zeros}15e100001")), exact("1.5"));
    assert_eq!(exact(&format!("0.{zeros}e5")), exact("0"));
    assert_eq!(exact(&format!("1{zeros}")), None);
    assert_eq!(exact(&format!("0.{zeros}1")), None);
    assert_eq!(exact(&format!("1.{zeros}1")), None);
}

#[test]
fn what_json_does_not_have_is_no_number() {
    assert_eq!(number(f64::NAN), None);
    assert_eq!(number(f64::INFINITY), None);
    assert_eq!(number(f64::NEG_INFINITY), None);
}

#[test]
fn values_from_elsewhere_are_brought_into_the_one_form() {
    let mut value = json!({"a": [1.0, -0.0, 0.5, u64::MAX, INTEGER_MAX, INTEGER_MAX + 1, i64::MIN], "b": "1.0"});
    normalise(&mut value);
    let large = [u64::MAX as f64, (INTEGER_MAX + 1) as f64, i64::MIN as f64];
    assert_eq!(value, json!({"a": [1, 0, 0.5, large[0], INTEGER_MAX, large[1], large[2]], "b": "1.0"}));
}

/// Any dependency can switch a feature on for all, and dropping one can switch it off. The map is sorted
/// and numbers have two forms only without the first two; what `serde_json` reads back from a store is
/// what was written only with the last.
#[test]
fn serde_json_is_built_with_the_features_that_values_rely_on() {
    let value: Value = serde_json::from_str("{\"b\":1e2,\"a\":1}").unwrap();
    assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), ["a", "b"], "preserve_order is on");
    assert_eq!(value["b"], json!(100.0), "arbitrary_precision is on");
    for text in ["0.09090909090909091", "6.934698245112694e276"] {
        assert_eq!(
            serde_json::from_str::<Value>(text).unwrap(),
            json!(text.parse::<f64>().unwrap()),
            "float_roundtrip is off"
        );
    }
}

proptest! {
    #[test]
    fn a_decimal_is_accepted_if_and_only_if_the_shortest_double_says_it_back(
        text in "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?"
    ) {
        prop_assert_eq!(exact(&text), reference(&text).and_then(number), "{}", text);
    }

    #[test]
    fn short_decimals_are_their_double(digits in 1_u64..1_000_000_000_000_000, exponent in -40_i32..40) {
        let text = format!("{digits}e{exponent}");
        let double: f64 = text.parse().unwrap();
        prop_assert_eq!(exact(&text), number(double));
    }

    #[test]
    fn every_double_survives_its_shortest_form(double in any::<f64>().prop_filter("finite", |it| it.is_finite())) {
        prop_assert_eq!(exact(ryu_js::Buffer::new().format_finite(double)), number(double));
        prop_assert_eq!(exact(&json!(double).to_string()), number(double));
    }
}
