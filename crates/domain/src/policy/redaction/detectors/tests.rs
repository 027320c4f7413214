use serde_json::json;

use super::*;

fn built_in(name: &str) -> Detectors {
    let mut detectors = Detectors::default();
    assert!(detectors.add_built_in(name), "{name}");
    detectors
}

fn private_key(kind: &str) -> String {
    format!("-----BEGIN {kind}PRIVATE KEY-----\nMIIE\n-----END {kind}PRIVATE KEY-----")
}

#[test]
fn every_built_in_detector_finds_its_kind_and_nothing_like_it() {
    let rsa = private_key("RSA ");
    let cases: [(&str, &[&str], &[&str]); 6] = [
        ("email", &["ana@example.org", "x <a.b+c@mail.example.co.uk>"], &["ana at example", "@ana", "a@b", "1@2"]),
        (
            "card_number",
            &[
                "4111111111111111",
                "pay 4111 1111-1111 1111 now",
                "17 5555 5555 5555 4444",
                "378282246310005",
                "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
            ],
            &[
                "4111111111111112",
                "1763719200000",
                "41111111111111111111111",
                "4111  1111 1111 1111",
                "4111,1111,1111,1111",
                "411111111111",
            ],
        ),
        (
            "jwt",
            &["eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJ4In0.c2ln", "x eyJhbGciOiJub25lIn0.eyJh. y"],
            &["eyJ.eyJ.x", "a.b.c"],
        ),
        ("aws_key", &["AKIAIOSFODNN7EXAMPLE", "key=ASIAIOSFODNN7EXAMPLE"], &["AKIAIOSFODNN7", "akiaiosfodnn7example"]),
        ("google_key", &["AIzaSyA-1234567890abcdefghijklmnopqrstu"], &["AIzaSy"]),
        (
            "private_key",
            &[&rsa, "-----BEGIN PRIVATE KEY-----\ncut off"],
            &["PRIVATE KEY", "-----BEGIN PUBLIC KEY-----"],
        ),
    ];
    for (name, found, not) in cases {
        let detectors = built_in(name);
        found.iter().for_each(|it| assert!(detectors.find(it), "{name}: {it}"));
        not.iter().for_each(|it| assert!(!detectors.find(it), "{name}: {it}"));
    }
    assert_eq!(BUILT_IN.len(), cases.len());
    assert!(!Detectors::default().add_built_in("passport"));
}

#[test]
fn what_is_found_is_masked_and_the_rest_stays() {
    let mut detectors = built_in("email");
    detectors.add_built_in("card_number");
    detectors.add("order", r"ORD-\d{4}").unwrap();
    let text = "Ask ana@example.org about 4111 1111 1111 1111, ORD-1234 and 17 é.";
    assert_eq!(masked(text, detectors.find_all(text)), "Ask [email] about [card_number], [order] and 17 é.");
    assert!(matches!(masked("nothing é", detectors.find_all("nothing é")), Cow::Borrowed("nothing é")));
    detectors.add("overlap", r"org about \d+").unwrap();
    let masked = masked(text, detectors.find_all(text));
    assert!(!masked.contains("4111") && !masked.contains("1111") && !masked.contains("example"), "{masked}");
}

#[test]
fn a_leaf_is_looked_at_as_it_is_written() {
    let detectors = built_in("card_number");
    assert!(detectors.find_in(&json!(4_111_111_111_111_111_i64)));
    assert!(detectors.find_in(&json!("4111111111111111")));
    for leaf in [json!(17), json!(null), json!(true), json!({}), json!([])] {
        assert!(!detectors.find_in(&leaf), "{leaf}");
    }
}

#[test]
fn a_pattern_that_cannot_be_used_is_refused() {
    let mut detectors = Detectors::default();
    for pattern in ["(", "a*", "", "(?:x{1000}){1000}", r"(\w)\1", "(?=x)"] {
        assert!(detectors.add("own", pattern).is_err(), "{pattern}");
    }
    assert!(detectors.is_empty());
}
