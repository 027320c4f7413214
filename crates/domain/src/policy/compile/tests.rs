use std::time::Duration;

use serde_json::json;

use super::*;
use crate::chain::hash::{Digest, Tag};
use crate::json::patch::{Patch, PatchFormat};
use crate::policy::{Judgement, PolicyRequest, ReasonCode, RejectCode, RequestKind, StateLimits, judge, judge_initial};

const GUIDE: &str = include_str!("../../../../../docs/reference/policy.md");
const CODES: &str = include_str!("../../../../../docs/reference/errors.md");
const EXAMPLE: &str = include_str!("example.toml");
const EXAMPLE_SCHEMA: &str = include_str!("payments.schema.json");

fn source(text: &str) -> PolicySource {
    PolicySource { text: text.to_owned(), schemas: BTreeMap::new() }
}

fn compile(text: &str) -> Policy {
    Policy::compile(&source(text)).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> PolicyError {
    Policy::compile(&source(text)).expect_err("this policy is refused")
}

/// Code, line and column of what is wrong with the text.
fn place(text: &str) -> (PolicyCode, u32, u32) {
    let error = error(text);
    (error.code, error.line, error.column)
}

const PEOPLE: &str = "[[approval.stages]]\ngroups = [\"finance\"]\n";

fn example() -> Policy {
    let schemas = [("payments.schema.json".to_owned(), EXAMPLE_SCHEMA.to_owned())].into();
    Policy::compile(&PolicySource { text: EXAMPLE.to_owned(), schemas }).unwrap()
}

#[test]
fn the_guides_example_is_understood() {
    assert!(
        GUIDE.contains(EXAMPLE.trim()) && GUIDE.contains(EXAMPLE_SCHEMA.trim()),
        "the guide shows this very example"
    );
    let policy = example();
    assert_eq!(policy.flow().as_str(), "payments");
    assert_eq!(policy.writers().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["database_writer"]);
    assert_eq!(policy.approval().covers(), ApprovalScope::Write);
    assert_eq!(policy.approval().stages().len(), 2);
    assert_eq!(policy.approval().stages()[1].comment(), CommentRule::Required);
}

#[test]
fn the_guides_example_does_what_the_guide_says() {
    let (policy, limits, node) = (example(), StateLimits::default(), NodeId::try_from("planner").unwrap());
    let before = json!({"target_user_id": 17, "payment": {"amount": 10, "confirmed": false}});
    assert!(!judge_initial(&policy, &before, &limits).unwrap().owes());
    let judged = |format, patch| {
        let patch = Patch::read(format, patch).unwrap();
        judge(&policy, &before, &PolicyRequest { node: &node, kind: RequestKind::Propose { patch: &patch } }, &limits)
    };
    let rejected = |judgement| match judgement {
        Judgement::Reject { violations } => {
            violations.iter().map(|it| (it.code.as_str(), it.pointer.to_string())).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert!(matches!(judged(PatchFormat::Merge, json!({"requested_action": "pay"})), Judgement::Commit { .. }));
    let injected = rejected(judged(PatchFormat::Merge, json!({"is_admin": true})));
    assert_eq!(injected[0], ("write_not_allowed", "/is_admin".to_owned()));
    assert!(injected[1..].iter().all(|(code, _)| *code == "schema"));
    let Judgement::Hold { reasons, .. } = judged(PatchFormat::Merge, json!({"target_user_id": 42})) else {
        panic!("not held")
    };
    assert_eq!(reasons[0].text, "`target_user_id` is protected and requires approval");
    let denied = rejected(judged(PatchFormat::MergePatch, json!({"payment": {"confirmed": true}})));
    assert_eq!(denied, [("write_denied", "/payment/confirmed".to_owned())]);
    assert!(matches!(judged(PatchFormat::MergePatch, json!({"payment": {"note": "x"}})), Judgement::Commit { .. }));
    let whole = json!({"payment": {"note": "x", "confirmed": false}});
    assert!(matches!(judged(PatchFormat::Merge, whole), Judgement::Hold { .. }));
}

#[test]
fn the_error_page_names_every_code() {
    use PolicyCode as P;
    let codes = [
        P::Syntax,
        P::UnknownKey,
        P::Missing,
        P::WrongType,
        P::BadValue,
        P::TooLarge,
        P::UnknownSchema,
        P::BadSchema,
        P::BadRule,
        P::Contradiction,
    ];
    let reasons = ReasonCode::ALL.iter().map(|it| it.as_str());
    for code in codes.map(P::as_str).into_iter().chain(RejectCode::ALL.iter().map(|it| it.as_str())).chain(reasons) {
        assert!(CODES.contains(&format!("| `{code}` |")), "{code}");
    }
}

#[test]
fn the_guide_names_every_key() {
    for keys in [
        KEYS,
        NODE_KEYS,
        APPROVAL_KEYS,
        STAGE_KEYS,
        JOIN_KEYS,
        context::KEYS,
        REDACTION_KEYS,
        rules::RULE_KEYS,
        transitions::KEYS,
        transitions::KEYED_KEYS,
        tools::TOOLS_KEYS,
        tools::DESCRIPTION_KEYS,
        tools::BUDGETS_KEYS,
        tools::BUDGET_KEYS,
    ] {
        for key in keys {
            let named =
                [format!("`{key}`"), format!("[{key}]"), format!("[{key}."), format!(".{key}]"), format!("`{key} =")];
            assert!(named.iter().any(|it| GUIDE.contains(it)), "{key}");
        }
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    let policy = compile("flow = \"f\"");
    let approval = policy.approval();
    assert!(!policy.trust_initial() && policy.protected().is_empty() && policy.hidden().is_empty());
    assert_eq!(policy.nodes().count(), 0);
    assert_eq!(approval.covers(), ApprovalScope::Commit);
    assert_eq!(approval.ttl(), Duration::from_secs(24 * 3600));
    assert_eq!(approval.receipt_ttl(), Duration::from_secs(600));
    assert_eq!(approval.write_lease(), Duration::from_secs(30));
    assert_eq!((approval.attempts(), approval.denials()), (3, 1));
    assert_eq!(approval.attempts_within(), Duration::from_secs(24 * 3600));
    assert!(approval.stages().is_empty());
    let staged = compile(&format!("flow = \"f\"\n{PEOPLE}"));
    assert_eq!(
        (staged.approval().stages()[0].need(), staged.approval().stages()[0].comment()),
        (1, CommentRule::Optional)
    );
    let node = compile("flow = \"f\"\n[nodes.n]");
    let node = node.node(&NodeId::try_from("n").unwrap()).unwrap();
    assert!(node.reads().is_empty() && node.writes().is_empty() && node.deny().is_empty());
    assert!(!node.is_writer() && !node.may_roll_back());
}

#[test]
fn an_approval_covers_the_write_where_there_is_a_writer() {
    assert_eq!(compile("flow = \"f\"\n[nodes.w]\nwriter = true").approval().covers(), ApprovalScope::Write);
    let commit = compile("flow = \"f\"\n[nodes.w]\nwriter = true\n[approval]\ncovers = \"commit\"");
    assert_eq!(commit.approval().covers(), ApprovalScope::Commit);
}

#[test]
fn the_digest_is_of_text_and_schemas() {
    let mut source = source("flow = \"f\"");
    let alone = source.digest();
    assert_eq!(alone, Digest::of(Tag::Policy, &[br#"{"policy":"flow = \"f\"","schemas":{}}"#]));
    source.schemas.insert("a.json".into(), "{}".into());
    let content = json!({"policy": "flow = \"f\"", "schemas": {"a.json": "{}"}}).to_string();
    assert_eq!(source.digest(), Digest::of(Tag::Policy, &[content.as_bytes()]));
    assert_eq!(Policy::compile(&source).unwrap().digest(), source.digest());
}

#[test]
fn an_unknown_key_is_refused_with_its_place() {
    assert_eq!(place("flow = \"f\"\n  protect = []"), (PolicyCode::UnknownKey, 2, 3));
    assert_eq!(place("flow = \"f\"\n[nodes.n]\nwrite = []"), (PolicyCode::UnknownKey, 3, 1));
    assert_eq!(place("flow = \"f\"\n[approval]\nttl = \"1h\"\ncover = 1"), (PolicyCode::UnknownKey, 4, 1));
    assert_eq!(place(&format!("flow = \"f\"\n{PEOPLE}group = []")), (PolicyCode::UnknownKey, 4, 1));
    assert_eq!(place("flow = \"f\"\n[redaction]\nhidden = []"), (PolicyCode::UnknownKey, 3, 1));
    let message = error("flow = \"f\"\n[nodes.n]\nwrite = []").message;
    assert!(message.contains("`nodes.n.write`") && message.contains("writes"), "{message}");
}

#[test]
fn people_are_reminded_and_others_asked_within_the_time_there_is() {
    let approval = |keys: &str| format!("flow = \"f\"\n[approval]\nttl = \"4h\"\n{keys}");
    let policy = compile(&approval("remind_after = \"1h\"\nescalate_after = \"2h\"\nescalate_to = [\"a\", \"b\"]"));
    assert_eq!(policy.approval().remind_after(), Some(std::time::Duration::from_secs(3600)));
    let escalation = policy.approval().escalation().unwrap();
    assert_eq!((escalation.after().as_secs(), escalation.to().len()), (7200, 2));
    let none = compile(&approval(""));
    assert_eq!((none.approval().remind_after(), none.approval().escalation()), (None, None));
    for (keys, code) in [
        ("remind_after = \"4h\"", PolicyCode::Contradiction),
        ("escalate_after = \"4h\"\nescalate_to = [\"a\"]", PolicyCode::Contradiction),
        ("escalate_after = \"1h\"", PolicyCode::Contradiction),
        ("escalate_to = [\"a\"]", PolicyCode::Contradiction),
        ("escalate_after = \"1h\"\nescalate_to = []", PolicyCode::BadValue),
        ("escalate_after = \"1h\"\nescalate_to = [\"a\", \"a\"]", PolicyCode::BadValue),
        ("remind_after = \"0s\"", PolicyCode::BadValue),
    ] {
        assert_eq!(error(&approval(keys)).code, code, "{keys}");
    }
    let other = compile(&approval("escalate_after = \"2h\"\nescalate_to = [\"a\"]"));
    assert!(!other.has_same_approval_terms(&policy), "who may vote later is among the terms that people decide on");
}

#[test]
fn a_flow_enforces_its_policy_unless_it_says_otherwise() {
    compile("flow = \"f\"\non_violation = \"fail_fast\"");
    assert_eq!(compile("flow = \"f\"").mode(), Mode::Enforce);
    assert_eq!(compile("flow = \"f\"\nmode = \"enforce\"").mode(), Mode::Enforce);
    assert_eq!(compile("flow = \"f\"\nmode = \"observe\"").mode(), Mode::Observe);
    assert_eq!(error("flow = \"f\"\nmode = \"on\"").code, PolicyCode::BadValue);
    assert_eq!(error("flow = \"f\"\non_violation = \"ask\"").code, PolicyCode::BadValue);
}

#[test]
fn what_is_not_toml_is_refused_with_its_place() {
    assert_eq!(place("flow = \"f\"\nprotected = [\"a\""), (PolicyCode::Syntax, 2, 17));
    assert_eq!(error("flow = \"f\"\nflow = \"g\"").code, PolicyCode::Syntax);
    assert_eq!(error("[nodes.n]\n[nodes.n]").code, PolicyCode::Syntax);
}

#[test]
fn a_column_counts_characters() {
    assert_eq!(place("flow = \"f\"\nprotected = [\"äöü\", 1]"), (PolicyCode::WrongType, 2, 21));
}

#[test]
fn a_flow_has_a_name() {
    assert_eq!(error("").code, PolicyCode::Missing);
    assert_eq!(place("flow = \"a b\""), (PolicyCode::BadValue, 1, 8));
    assert_eq!(place("flow = \"all\""), (PolicyCode::BadValue, 1, 8), "the word for every flow");
    assert_eq!(place("flow = 1"), (PolicyCode::WrongType, 1, 8));
    assert_eq!(place("flow = \"f\"\n[nodes.\"a b\"]"), (PolicyCode::BadValue, 2, 8));
}

#[test]
fn durations_are_a_number_and_a_unit_within_bounds() {
    let ttl = |text: &str| Policy::compile(&source(&format!("flow = \"f\"\n[approval]\nttl = {text}")));
    for (text, secs) in [("\"1s\"", 1), ("\"10m\"", 600), ("\"24h\"", 86_400), ("\"2160h\"", 90 * 86_400)] {
        assert_eq!(ttl(text).unwrap().approval().ttl(), Duration::from_secs(secs), "{text}");
    }
    for bad in [
        "\"\"",
        "\"s\"",
        "\"1\"",
        "\"1d\"",
        "\"-1h\"",
        "\"+1h\"",
        "\"1.5h\"",
        "\"1 h\"",
        "\"1h30m\"",
        "\"0s\"",
        "\"2161h\"",
        "\"99999999999999999999h\"",
        "\"5124095576030432h\"",
        "\"1\u{fc}\"",
    ] {
        assert_eq!(ttl(bad).unwrap_err().code, PolicyCode::BadValue, "{bad}");
    }
    assert_eq!(ttl("60").unwrap_err().code, PolicyCode::WrongType);
    let message = ttl("\"0s\"").unwrap_err().message;
    assert!(message.contains("from 1s to 2160h"), "{message}");
    for (key, long) in [("receipt_ttl", "25h"), ("write_lease", "61m"), ("attempts_within", "2161h")] {
        assert_eq!(error(&format!("flow = \"f\"\n[approval]\n{key} = \"{long}\"")).code, PolicyCode::BadValue);
    }
}

#[test]
fn counts_are_bounded() {
    for (key, good, bad) in
        [("attempts", "100", "101"), ("attempts", "1", "0"), ("denials", "32", "33"), ("denials", "1", "0")]
    {
        compile(&format!("flow = \"f\"\n[approval]\n{key} = {good}"));
        assert_eq!(error(&format!("flow = \"f\"\n[approval]\n{key} = {bad}")).code, PolicyCode::BadValue);
    }
    for bad in ["0", "33", "-1", "99999999999"] {
        assert_eq!(error(&format!("flow = \"f\"\n{PEOPLE}need = {bad}")).code, PolicyCode::BadValue, "{bad}");
    }
    assert_eq!(error(&format!("flow = \"f\"\n{PEOPLE}need = \"2\"")).code, PolicyCode::WrongType);
}

#[test]
fn lists_are_bounded() {
    let list = |n: usize| (0..n).map(|i| format!("\"k{i}\"")).collect::<Vec<_>>().join(", ");
    compile(&format!("flow = \"f\"\n[nodes.n]\nreads = [{}]", list(256)));
    for (many, text) in [
        (257, "[nodes.n]\nreads = [LIST]"),
        (257, "[nodes.n]\nwrites = [LIST]"),
        (257, "[nodes.n]\ndeny = [LIST]"),
        (257, "protected = [LIST]"),
        (257, "[redaction]\nhide = [LIST]"),
        (33, "[[approval.stages]]\ngroups = [LIST]"),
    ] {
        assert_eq!(
            error(&format!("flow = \"f\"\n{}", text.replace("LIST", &list(many)))).code,
            PolicyCode::TooLarge,
            "{text}"
        );
    }
    assert_eq!(error(&format!("flow = \"f\"\n{}", PEOPLE.repeat(9))).code, PolicyCode::TooLarge);
    let nodes: String = (0..257).map(|i| format!("[nodes.n{i}]\n")).collect();
    assert_eq!(error(&format!("flow = \"f\"\n{nodes}")).code, PolicyCode::TooLarge);
    assert_eq!(error(&format!("flow = \"f\"\n#{}", "x".repeat(256 * 1024))).code, PolicyCode::TooLarge);
    let mut many = source("flow = \"f\"");
    many.schemas = (0..65).map(|i| (format!("s{i}"), "{}".to_owned())).collect();
    assert_eq!(Policy::compile(&many).unwrap_err().code, PolicyCode::TooLarge);
    many.schemas = [("s".to_owned(), " ".repeat(256 * 1024 + 1))].into();
    assert_eq!(Policy::compile(&many).unwrap_err().code, PolicyCode::TooLarge);
}

#[test]
fn a_pattern_that_names_nothing_is_refused() {
    for bad in ["", "a..b", "/a/b", "a*", "a[0]", "a\\u0000"] {
        let text = format!("flow = \"f\"\n[nodes.n]\nreads = [\"ok\", \"{bad}\"]");
        assert_eq!(place(&text), (PolicyCode::BadValue, 3, 16), "{bad}");
    }
    assert_eq!(place("flow = \"f\"\n[nodes.n]\nreads = [\"a\", \"a\"]"), (PolicyCode::BadValue, 3, 15));
}

#[test]
fn protection_needs_people() {
    let (code, line, column) = place("flow = \"f\"\nprotected = [\"a\"]");
    assert_eq!((code, line, column), (PolicyCode::Contradiction, 2, 13));
    compile("flow = \"f\"\nprotected = []");
    compile(&format!("flow = \"f\"\nprotected = [\"a\"]\n{PEOPLE}"));
}

#[test]
fn a_stage_names_its_groups_once() {
    assert_eq!(error("flow = \"f\"\n[[approval.stages]]\nneed = 1").code, PolicyCode::Missing);
    for bad in ["[]", "[\"a\", \"a\"]", "[\"a b\"]"] {
        assert_eq!(
            error(&format!("flow = \"f\"\n[[approval.stages]]\ngroups = {bad}")).code,
            PolicyCode::BadValue,
            "{bad}"
        );
    }
    for bad in ["comment = \"yes\"", "comment = \"\""] {
        assert_eq!(error(&format!("flow = \"f\"\n{PEOPLE}{bad}")).code, PolicyCode::BadValue);
    }
    assert_eq!(error("flow = \"f\"\n[approval]\ncovers = \"all\"").code, PolicyCode::BadValue);
}

#[test]
fn a_schema_file_must_be_handed_in() {
    let text = "flow = \"f\"\nschema = \"a.json\"";
    let missing = error(text);
    assert_eq!((missing.code, missing.line, missing.column), (PolicyCode::UnknownSchema, 2, 10));
    let mut with = source(text);
    with.schemas.insert("b.json".into(), "{}".into());
    assert!(Policy::compile(&with).unwrap_err().message.contains("Present: b.json"));
    with.schemas.insert("a.json".into(), "{\"typ\": 1}".into());
    let bad = Policy::compile(&with).unwrap_err();
    assert_eq!((bad.code, bad.line), (PolicyCode::BadSchema, 2));
    assert!(bad.message.contains("\"/typ\"") && bad.message.contains("`schema`"), "{}", bad.message);
}

#[test]
fn an_inline_schema_says_only_what_json_can() {
    compile("flow = \"f\"\n[schema.properties.a]\nmaximum = 0x10\nmultipleOf = 0.5\nenum = [1, \"x\", true, {}]");
    for bad in ["maximum = inf", "maximum = nan", "const = 2026-01-01", "maximum = 99999999999999999999"] {
        assert_eq!(error(&format!("flow = \"f\"\n[schema]\n{bad}")).code, PolicyCode::BadSchema, "{bad}");
    }
    assert_eq!(error("flow = \"f\"\nschema = 1").code, PolicyCode::WrongType);
}

#[test]
fn wrong_types_are_named() {
    for (text, wanted) in [
        ("protected = \"a\"", "a list"),
        ("protected = [1]", "a text"),
        ("trust_initial = \"yes\"", "true or false"),
        ("nodes = 1", "a table"),
        ("[nodes]\nn = 1", "a table"),
        ("approval = 1", "a table"),
        ("[approval]\nstages = 1", "a list"),
        ("[approval]\nstages = [1]", "a table"),
        ("redaction = 1", "a table"),
        ("mode = 1", "a text"),
    ] {
        let error = error(&format!("flow = \"f\"\n{text}"));
        assert_eq!(error.code, PolicyCode::WrongType, "{text}");
        assert!(error.message.contains(wanted), "{}", error.message);
    }
}

#[test]
fn detectors_are_named_or_described_and_nothing_else() {
    compile(
        "flow = \"f\"\n[redaction]\ndetect = [\"email\", \"card_number\", \"jwt\", \"aws_key\", \"google_key\", \"private_key\"]",
    );
    compile("flow = \"f\"\n[redaction]\ndetect = []\npatterns = { iban_2 = '[A-Z]{2}\\d{20}' }");
    for wrong in [
        "detect = [\"mail\"]",
        "detect = [\"email\", \"email\"]",
        "patterns = { email = 'x' }",
        "patterns = { \"ORD\" = 'x' }",
        "patterns = { \"\" = 'x' }",
        "patterns = { x = '(' }",
        "patterns = { x = 'a*' }",
    ] {
        assert_eq!(error(&format!("flow = \"f\"\n[redaction]\n{wrong}")).code, PolicyCode::BadValue, "{wrong}");
    }
    assert_eq!(error("flow = \"f\"\n[redaction]\ndetect = [1]").code, PolicyCode::WrongType);
    let message = error("flow = \"f\"\n[redaction]\ndetect = [\"mail\"]").message;
    assert!(message.contains("email, card_number"), "{message}");
}

#[test]
fn hidden_values_are_revealed_to_the_groups_named_and_to_nobody_otherwise() {
    let groups = |text: &str| -> Vec<String> {
        compile(&format!("flow = \"f\"\n[redaction]\n{text}")).reveal_to().iter().map(ToString::to_string).collect()
    };
    assert_eq!(groups("hide = [\"a\"]"), [""; 0]);
    assert_eq!(groups("reveal_to = []"), [""; 0]);
    assert_eq!(groups("reveal_to = [\"security\", \"fraud\"]"), ["fraud", "security"]);
    let code = |text: &str| error(&format!("flow = \"f\"\n[redaction]\n{text}")).code;
    assert_eq!(code("reveal_to = [\"a\", \"a\"]"), PolicyCode::BadValue);
    assert_eq!(code("reveal_to = [\"\"]"), PolicyCode::BadValue);
    assert_eq!(code("reveal_to = \"security\""), PolicyCode::WrongType);
    assert_eq!(code("reveal_to = [1]"), PolicyCode::WrongType);
}

#[test]
fn a_stage_asks_for_a_signature_or_for_a_passkey_that_was_used_a_moment_ago() {
    let text = |keys: &str| format!("flow = \"a\"\n[[approval.stages]]\ngroups = [\"g\"]\n{keys}");
    let stage = |keys: &str| compile(&text(keys)).approval().stages()[0].passkey();
    assert_eq!(stage(""), PasskeyRule::Optional);
    assert_eq!(stage("passkey = false"), PasskeyRule::Optional);
    assert_eq!(stage("passkey = true"), PasskeyRule::Signs);
    assert_eq!(stage("passkey_within = \"5m\""), PasskeyRule::Within(Duration::from_secs(300)));
    assert_eq!(error(&text("passkey_within = \"1s\"")).code, PolicyCode::BadValue);
    assert_eq!(error(&text("passkey = true\npasskey_within = \"5m\"")).code, PolicyCode::BadValue);
}

#[test]
fn a_stage_says_whether_an_approval_is_typed_and_nothing_that_is_not_known() {
    let text = |asks: &str| format!("flow = \"f\"\n[[approval.stages]]\ngroups = [\"g\"]\n{asks}");
    let stage = |asks: &str| compile(&text(asks)).approval().stages()[0].confirm();
    assert_eq!(stage(""), ConfirmationRule::Pressed);
    assert_eq!(stage("confirm = \"pressed\""), ConfirmationRule::Pressed);
    assert_eq!(stage("confirm = \"typed\""), ConfirmationRule::Typed);
    let unknown = error(&text("confirm = \"spoken\""));
    assert_eq!((unknown.code, unknown.line), (PolicyCode::BadValue, 4));
    assert!(unknown.message.contains("`confirm` must be \"pressed\" or \"typed\""), "{unknown:?}");
    assert_eq!(error(&text("confirm = true")).code, PolicyCode::WrongType);
    let amending = "flow = \"f\"\n[approval.policy]\ngroups = [\"g\"]\nconfirm = \"typed\"";
    assert_eq!(error(amending).code, PolicyCode::UnknownKey);
}

#[test]
fn the_people_of_a_policy_sign_it_or_used_a_passkey_a_moment_ago() {
    let text = |keys: &str| format!("flow = \"a\"\n[approval.policy]\ngroups = [\"g\"]\n{keys}");
    let asked = |keys: &str| compile(&text(keys)).approval().amending().unwrap().stage().passkey();
    assert_eq!(asked(""), PasskeyRule::Optional);
    assert_eq!(asked("passkey = true"), PasskeyRule::Signs);
    assert_eq!(asked("passkey_within = \"5m\""), PasskeyRule::Within(Duration::from_secs(300)));
    assert_eq!(error(&text("passkey = true\npasskey_within = \"5m\"")).code, PolicyCode::BadValue);
}
