//! Good and bad samples: each rule fires where it should, and only there.

use std::collections::BTreeSet;

use clap::{Arg, Command};
use serde_json::json;

use crate::ratchet::{self, AllowedCounts, CountChange, TextMoved};
use crate::rules::{OPENINGS, WORDS_MAX, broken};
use crate::terms::TERMS;
use crate::text::{Passage, SourceKind, area, check, sentences};
use crate::{clients, described, html, markdown, names, rust};

fn rules(sentence: &str) -> Vec<String> {
    broken(sentence, None).into_iter().map(|it| it.rule).collect()
}

fn passage(kind: SourceKind, path: &str, text: &str) -> Passage {
    Passage { kind, path: path.to_owned(), line: 1, text: text.to_owned() }
}

#[test]
fn opening_without_a_subject_is_found() {
    for bad in [
        "What has no answer rejects.",
        "Whoever runs it is whom they say.",
        "Of these nobody knows.",
        "Nor does it write.",
        "Where a lease ends, the write stops.",
        "So is the receipt.",
        "Not is it shown.",
        "Told is every reviewer.",
        "Counted are the votes.",
        "Kept is only the digest.",
    ] {
        assert!(rules(bad).iter().any(|it| it.starts_with("opening") || it.starts_with("inversion")), "{bad}");
    }
    for good in [
        "What happens when the lease expires?",
        "What",
        "Where available, the gateway uses TLS.",
        "The gateway rejects what has no answer.",
        "Often the lease has expired.",
        "Neither has voted.",
        "Seed is a number.",
        "So the gateway rejects it.",
        "Offers are listed.",
        "Not every vote is valid.",
    ] {
        assert_eq!(rules(good), Vec::<String>::new(), "{good}");
    }
}

#[test]
fn term_of_the_left_column_is_found() {
    for (at, bad) in BAD_TERMS.iter().enumerate() {
        let found = rules(bad);
        assert!(!found.is_empty(), "no rule fires on {bad:?}");
        let only = broken(bad, None).iter().any(|it| it.instead == TERMS[at].instead);
        assert!(only, "{bad:?} is the sample of rule {at}, {:?}, but breaks {found:?}", TERMS[at].pattern);
    }
    assert_eq!(BAD_TERMS.len(), TERMS.len(), "each term has one sample, in the order of the table");
}

const BAD_TERMS: [&str; 34] = [
    "Then people are asked.",
    "The event is told to endpoints.",
    "The asker waits.",
    "The policy stands.",
    "It answers nobody.",
    "The policy opens a hold.",
    "An agent takes its proposal back.",
    "A proxy lets them through.",
    "Let the agents go on.",
    "After five tries the account waits.",
    "The gateway sends letters.",
    "Each endpoint has a lane.",
    "The feed resumes.",
    "One process has the duty.",
    "Each room of the program is listed.",
    "The policy of this flow hides them.",
    "The folder contains what remains of a run.",
    "It is the gateway's word only.",
    "A reviewer had a hand in the change.",
    "The request is turned away.",
    "Such a vote does not count.",
    "The digest is kept.",
    "The gateway forgets the nonce.",
    "A certificate vouches for it.",
    "People sign in elsewhere.",
    "It says nothing to strangers.",
    "The text is inert.",
    "The flow has a past.",
    "The worker reads the row anew.",
    "Besides, the row is signed.",
    "The page lists what hosts ask.",
    "The edit owes two votes.",
    "The lease lapses.",
    "The amendment is pending.",
];

#[test]
fn plain_meaning_of_a_term_is_no_finding() {
    for good in [
        "A dead letter can be delivered again.",
        "A name has letters, digits and dashes.",
        "Only lower-case letters are valid.",
        "Separation of duties requires two people.",
        "See the house rules.",
        "There is room for one more lease.",
        "Programs without a lock are kept out.",
        "The copy is stored elsewhere.",
        "Items are told apart by their key.",
        "Hidden characters are shown as escapes.",
        "The proposal is held for approval.",
        "The lock holds while the worker runs.",
        "A delegated vote does not count towards the quorum.",
        "A forgotten password can be reset.",
        "The request is past the deadline.",
        "The worker tries again.",
        "Outstanding reviews are listed.",
        "The call returns at once.",
        "The log is signed, in turn, at each place.",
    ] {
        assert_eq!(rules(good), Vec::<String>::new(), "{good}");
    }
}

#[test]
fn code_font_is_no_prose() {
    for good in [
        "The key `hide` redacts a value.",
        "The tables ``letters`` and `lanes` have [a policy key](docs/standing.md).",
        "See <https://example.org/whoever> and https://example.org/letters.",
    ] {
        let (_, text) = markdown::passages(good).remove(0);
        assert_eq!(rules(&text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn long_sentence_is_found_outside_of_the_specifications() {
    let long = format!("{}end.", "word ".repeat(WORDS_MAX));
    let fits = format!("{}end.", "word ".repeat(WORDS_MAX - 1));
    let count = |path: &str, text: &str| check(&passage(SourceKind::Docs, path, text), "docs").1.len();
    assert_eq!(count("docs/guides/a.md", &long), 1);
    assert_eq!(count("docs/guides/a.md", &fits), 0);
    assert_eq!(count("docs/specs/a.md", &long), 0);
    assert_eq!(count("docs/specs/a.md", "Nor is it."), 1);
}

#[test]
fn sentence_has_the_line_where_it_begins() {
    let text = "One gateway, e.g. this one. It\nruns. \"X\" returns\n403: Never mind.\n(See below.)";
    let found = sentences(&passage(SourceKind::Docs, "a.md", text));
    let found: Vec<(usize, &str)> = found.iter().map(|(line, it)| (*line, it.as_str())).collect();
    let expected = [
        (1, "One gateway, e.g. this one."),
        (1, "It runs."),
        (2, "\"X\" returns 403:"),
        (3, "Never mind."),
        (4, "(See below.)"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn message_names_the_line_the_rule_and_the_better_word() {
    let (count, found) = check(&passage(SourceKind::Docs, "docs/a.md", "It runs.\nThe lease lapses."), "docs");
    assert_eq!(count, 2);
    let expected = "docs/a.md:2: The lease lapses.\n    term \"lapses\"; instead: lease expired, outcome unknown";
    assert_eq!(found[0].to_string(), expected);
}

#[test]
fn markdown_is_read_by_paragraph_item_and_cell() {
    let page = "# Title\n\nOne\ntwo `a\nb` three.\n- [x] item\n  more\n\n```\ncode\n```\n| a | b `x|y` |\n|---|---|\n<!--\nno\n-->\n\
                <!-- prose: off -->\nbad\n<!-- prose: on -->\n> quote **bold** <br>\n";
    let found = markdown::passages(page);
    let found: Vec<(usize, &str)> = found.iter().map(|(line, it)| (*line, it.as_str())).collect();
    let expected =
        [(1, "Title"), (3, "One\ntwo X\n three."), (6, "item\nmore"), (12, "a"), (12, "b X"), (20, "quote bold ")];
    assert_eq!(found, expected);
}

#[test]
fn template_is_read_as_a_person_sees_it() {
    let page = "{% extends \"base.html\" %}\n<p class=\"hidden\">Hello <b>{{ name }}</b>,\n{# no #}<code>no</code></p>{% if a %}yes{% endif %}\n\
                <script>no</script><button aria-label=\"Close it\" data-x=\"no\">Close</button>";
    let found: BTreeSet<(usize, String)> = html::passages(page)
        .into_iter()
        .map(|(line, it)| (line, it.split_whitespace().collect::<Vec<_>>().join(" ")))
        .collect();
    let expected = [(2, "Hello X,"), (3, "X"), (3, "yes"), (4, "Close"), (4, "Close it")];
    assert_eq!(found, expected.iter().map(|(line, it)| (*line, (*it).to_owned())).collect());
}

#[test]
fn rust_comments_and_strings_are_read_by_kind() {
    let text = "//! Module.\n\n/// One\n/// two.\n// Why.\nfn f() { log(\"the lease of {id} has\\\n    expired now\"); }\n\
                #[error(\n    \"the key is too long\"\n)]\nfn detail() -> &'static str {\n    \"two or more words here\"\n}\n\
                const Q: &str = \"SELECT some text from it\";\n#[cfg(test)]\nmod tests { const A: &str = \"not read at all here\"; }\n";
    let read = [rust::comments("src/a.rs", text), rust::strings("src/a.rs", text)].concat();
    let found: Vec<(SourceKind, usize, &str)> = read.iter().map(|it| (it.kind, it.line, it.text.as_str())).collect();
    let expected = [
        (SourceKind::DocComments, 1, "Module."),
        (SourceKind::DocComments, 3, "One\ntwo."),
        (SourceKind::Comments, 5, "Why."),
        (SourceKind::Strings, 6, "the lease of X has\nexpired now"),
        (SourceKind::Errors, 9, "the key is too long"),
        (SourceKind::Errors, 12, "two or more words here"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn clients_are_read_by_docstring_and_comment() {
    let python = "\"\"\"Module.\"\"\"\n\ndef f():\n    '''no'''\n    r\"\"\"Returns ``x``.\n\n    >>> f()\n    \"\"\"\n    a = \"\"\"no\"\"\"\n";
    assert_eq!(clients::docstrings(python), [(1, "Module.".to_owned()), (5, "Returns X.".to_owned())]);
    let sql = "-- One\n-- two.\n--\n--     psql no\nSELECT 1; -- no\n    -- Three.\n";
    assert_eq!(clients::sql_comments(sql), [(1, "One\ntwo.".to_owned()), (6, "Three.".to_owned())]);
}

#[test]
fn help_is_read_from_every_command() {
    let inner = Command::new("add").about("Add a token").arg(Arg::new("name").long("name").help("The name"));
    let help = described::help(&Command::new("it").about("Short").long_about("Short. Long.").subcommand(inner), "it");
    let expected = [("it", "Short. Long."), ("it add", "Add a token"), ("it add --name", "The name")];
    assert_eq!(help, expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
}

#[test]
fn description_is_read_wherever_it_is() {
    let document = json!({
        "info": { "description": "One." },
        "example": { "description": "no" },
        "properties": { "description": { "type": "string", "description": "Two." } },
        "tags": [{ "summary": "Three" }],
    });
    let expected =
        [("/info/description", "One."), ("/properties/description/description", "Two."), ("/tags/0/summary", "Three")];
    assert_eq!(described::descriptions(&document, ""), expected.map(|(at, text)| (at.to_owned(), text.to_owned())));
}

#[test]
fn area_survives_a_move_inside_of_it() {
    for (path, expected) in [
        ("crates/service/src/a.rs", "crates/service"),
        ("crates/service/src/threads/a.rs", "crates/service"),
        ("src/feed.rs", "src/feed"),
        ("src/feed/a.rs", "src/feed"),
        ("docs/guides/a.md", "docs"),
        ("docs/specs/a.md", "docs/specs"),
        ("clients/sql/README.md", "clients/sql"),
        ("README.md", "README.md"),
        ("tests/api/a.rs", "tests"),
        ("countersign token add --name", "countersign"),
    ] {
        assert_eq!(area(path), expected);
    }
}

#[test]
fn ratchet_turns_one_way() {
    let counts = |text: &str| AllowedCounts::parse(text).unwrap();
    let allowed = counts("[docs]\n\"docs\" = 5\n\"docs/specs\" = 2\n");
    assert_eq!(AllowedCounts::parse(&allowed.text()).unwrap(), allowed);

    let fell = counts("[docs]\n\"docs\" = 3\n\"docs/specs\" = 2\n");
    let change = |found: usize| CountChange { kind: "docs".to_owned(), area: "docs".to_owned(), allowed: 5, found };
    assert_eq!(ratchet::changes(&allowed, &fell), [change(3)]);
    assert_eq!(ratchet::renewed(&allowed, &fell, TextMoved::No), fell);

    let rose = counts("[docs]\n\"docs\" = 6\n\"docs/specs\" = 2\n");
    assert_eq!(ratchet::changes(&allowed, &rose), [change(6)]);
    for moved in [TextMoved::No, TextMoved::Yes] {
        assert_eq!(ratchet::renewed(&allowed, &rose, moved), allowed);
    }

    let moved = counts("[docs]\n\"docs\" = 1\n\"docs/specs\" = 5\n");
    assert_eq!(ratchet::renewed(&allowed, &moved, TextMoved::Yes), moved);
    assert_eq!(ratchet::renewed(&allowed, &moved, TextMoved::No), counts("[docs]\n\"docs\" = 1\n\"docs/specs\" = 2\n"));

    let new = counts("[errors]\n\"src/new\" = 1\n");
    let renewed = ratchet::renewed(&AllowedCounts::default(), &new, TextMoved::No);
    assert_eq!(ratchet::changes(&AllowedCounts::default(), &renewed), []);

    let named = counts("[docs]\n\"docs\" = 1\n[names]\n\"shared\" = 2\n");
    let renewed = ratchet::renewed(&counts("[docs]\n\"docs\" = 9\n[names]\n\"shared\" = 1\n"), &named, TextMoved::Yes);
    assert_eq!((renewed.get("docs", "docs"), renewed.get("names", "shared")), (1, 1));
}

#[test]
fn shared_and_forbidden_names_are_counted() {
    let mut all = names::DeclaredTypes::new();
    names::declared(
        "src/a.rs",
        "pub struct View;\n    pub(crate) enum Told {}\nimpl A { type Output = u8; }\n",
        &mut all,
    );
    names::declared("src/b.rs", "struct View<'a>(&'a str);\n// struct Told;\npub type Digest = u8;\n", &mut all);
    let shared: Vec<&str> = names::shared(&all).iter().map(|it| it.0.as_str()).collect();
    assert_eq!(shared, ["View"]);
    assert_eq!(names::forbidden(&all), [("Told", &"src/a.rs:2".to_owned())]);
    assert!(all.contains_key("Digest") && !all.contains_key("Output"));
}

#[test]
fn every_rule_has_an_advice() {
    assert!(OPENINGS.iter().chain(TERMS).all(|it| !it.instead.is_empty() && !it.pattern.is_empty()));
}
