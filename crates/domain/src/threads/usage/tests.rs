use serde_json::json;

use super::*;

#[test]
fn a_cost_is_the_decimal_that_was_written() {
    for (written, told) in [
        (json!(0), "0"),
        (json!(0.1), "0.1"),
        (json!(0.000_001), "0.000001"),
        (json!(1.5), "1.5"),
        (json!(999_999_999.999_999), "999999999.999999"),
        (json!(12), "12"),
    ] {
        let usage = Usage::read(&json!({"cost": written})).unwrap();
        assert_eq!(usage.cost.unwrap().text(), told);
        assert_eq!(usage.stated().unwrap(), json!({"cost": written}), "it is stated as it was said");
    }
}

#[test]
fn ten_tenths_are_one() {
    let tenth = Usage::read(&json!({"cost": 0.1})).unwrap();
    let sum = (0..10).fold(UsageAmount::default(), |sum, _| sum.with(0, tenth));
    assert_eq!(sum.cost_millionths, Cost::parse("1").unwrap());
}

#[test]
fn invalid_usage_is_refused_with_its_path() {
    for (usage, place) in [
        (json!([]), ""),
        (json!(5), ""),
        (json!(null), ""),
        (json!({"token": 1}), "/token"),
        (json!({"tokens": -1}), "/tokens"),
        (json!({"tokens": 1.5}), "/tokens"),
        (json!({"tokens": "1"}), "/tokens"),
        (json!({"tokens": null}), "/tokens"),
        (json!({"tokens": TOKENS_MAX + 1}), "/tokens"),
        (json!({"cost": -0.1}), "/cost"),
        (json!({"cost": "0.1"}), "/cost"),
        (json!({"cost": 0.000_000_1}), "/cost"),
        (json!({"cost": 0.123_456_7}), "/cost"),
        (json!({"cost": 1e21}), "/cost"),
        (json!({"cost": 1_000_000_000}), "/cost"),
        (json!({"cost": null}), "/cost"),
    ] {
        assert_eq!(Usage::read(&usage).unwrap_err().pointer.as_str(), place, "{usage}");
    }
}

#[test]
fn saturated_sum_stays_above_every_limit() {
    let full = UsageAmount {
        calls: INTEGER_MAX,
        tokens: INTEGER_MAX,
        cost_millionths: Cost(INTEGER_MAX),
        context_tokens: INTEGER_MAX,
    };
    assert_eq!(full.given(1), full);
    assert_eq!(full.with(1, Usage { tokens: Some(1), cost: Some(Cost(1)) }), full);
    assert!(full.cost_millionths > Cost::parse("999999999.999999").unwrap());
}
