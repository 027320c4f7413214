use serde_json::json;

use super::*;

/// Returns the paths of the parts that belong to `/payment/iban` or below, each with whether the part is a value.
fn found(told: &Value) -> Vec<(String, bool)> {
    let iban = Pointer::try_from("/payment/iban").unwrap();
    let placed = placed(told, &|it| iban.covers(it).then(|| iban.clone()));
    placed.into_iter().map(|it| (it.at.to_string(), it.value.is_some())).collect()
}

fn values(at: &[&str]) -> Vec<(String, bool)> {
    at.iter().map(|it| ((*it).to_owned(), true)).collect()
}

#[test]
fn a_line_names_its_place_in_any_of_the_usual_ways() {
    for name in [
        json!({"pointer": "/payment/iban"}),
        json!({"path": "/payment/iban"}),
        json!({"key": "payment.iban"}),
        json!({"field": ["payment", "iban"]}),
    ] {
        let mut line = name.clone();
        line["before"] = json!("DE02");
        line["after"] = json!("DE03");
        assert_eq!(found(&json!([1, line])), values(&["/1/after", "/1/before"]), "{name}");
        let mut other = name.clone();
        other["effect"] = json!("changed");
        assert_eq!(found(&json!([other])), [("/0/effect".to_owned(), false)], "{name}");
    }
}

#[test]
fn what_stands_below_the_place_of_a_line_is_placed_there() {
    let line = json!({"op": "replace", "path": "/payment", "value": {"iban": "DE02", "amount": 3}});
    assert_eq!(found(&json!([line])), values(&["/0/value/iban"]));
    let line = json!({"path": ["payment"], "old": null, "new": {"iban": {"country": "DE"}}});
    assert_eq!(found(&json!({"lines": [line]})), values(&["/lines/0/new/iban"]));
    assert_eq!(found(&json!([{"path": ["items", 0], "value": {"iban": 1}}])), []);
}

#[test]
fn places_are_keys_too_and_sides_stand_above_or_below() {
    assert_eq!(found(&json!({"/payment/iban": ["DE02", "DE03"]})), values(&["/~1payment~1iban"]));
    assert_eq!(found(&json!({"/payment": {"after": {"iban": "DE02"}}})), values(&["/~1payment/after/iban"]));
    assert_eq!(found(&json!({"payment": {"after": {"iban": "DE02"}}})), values(&["/payment/after/iban"]));
    assert_eq!(found(&json!({"after": {"payment": {"iban": "DE02"}}})), values(&["/after/payment/iban"]));
}

#[test]
fn what_names_no_place_is_placed_where_it_stands() {
    assert_eq!(found(&json!({"payment": {"iban": "DE02"}})), values(&["/payment/iban"]));
    assert_eq!(found(&json!([{"path": 7, "value": "DE02"}, {"path": "/payment/~", "value": 1}, "payment"])), []);
    assert_eq!(found(&json!([{"path": "/payment/amount", "value": 7}])), []);
}

#[test]
fn a_name_below_something_hidden_is_placed_there_as_well() {
    let below = |it: &str| (it.to_owned(), false);
    let line = json!({"path": "/payment/iban/DE02", "value": 1});
    assert_eq!(found(&json!([line])), [below("/0/path"), ("/0/value".to_owned(), true)]);
    let keyed = json!({"lines": {"/payment/iban/DE02": 1}});
    assert_eq!(found(&keyed), [below("/lines"), ("/lines/~1payment~1iban~1DE02".to_owned(), true)]);
}
