//! Text as people and agents write it, with secrets in it.

use countersign_domain::policy::{Policy, PolicySource, Redactor};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// One of each kind that detectors know.
const SECRETS: &[&str] = &[
    "ana.b+c@mail.example.org",
    "4111 1111 1111 1111",
    "5500-0000-0000-0004",
    "340000000000009",
    "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln",
    "AKIAABCDEFGHIJKLMNOP",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
    "ORD-1234",
];

fn policy() -> Policy {
    let text = "flow = \"f\"\n[redaction]\n\
        detect = [\"email\", \"card_number\", \"jwt\", \"aws_key\", \"google_key\", \"private_key\"]\n\
        patterns = { order = 'ORD-\\d{4}' }\n";
    Policy::compile(&PolicySource { text: text.to_owned(), ..PolicySource::default() }).expect("it is a policy")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_secret_that_is_known_stays_in_words(
        pieces in vec((select(SECRETS), "[ ,;:(\u{e9}\n]{1,2}", "([a-z]{1,8} ){0,2}"), 1..5),
    ) {
        let policy = policy();
        let words: String = pieces.iter().map(|(secret, between, words)| format!("{between}{words}{secret}{between}")).collect();
        let hiding = Redactor::of(&policy, [], None);
        let masked = hiding.masked(&words).into_owned();
        for (secret, _, _) in &pieces {
            prop_assert!(!masked.contains(secret), "{} in {}", secret, masked);
        }
        prop_assert_eq!(hiding.masked(&masked).into_owned(), masked);
    }
}
