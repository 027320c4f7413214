use super::super::super::error::PolicyCode::{self, BadValue, Missing, TooLarge, UnknownKey, WrongType};
use super::super::super::model::Policy;
use super::*;
use crate::policy::policy_source::PolicySource;

fn compile(text: &str) -> Result<Policy, PolicyError> {
    let source = PolicySource { text: format!("flow = \"f\"\n[transitions]\n{text}"), ..PolicySource::default() };
    Policy::compile(&source)
}

fn rules(text: &str) -> Vec<TransitionRule> {
    compile(text).unwrap_or_else(|error| panic!("{text}: {error}")).transitions
}

/// Code, line and column of what is wrong; the text begins in line 3.
fn place(text: &str) -> (PolicyCode, u32, u32) {
    let error = compile(text).expect_err(text);
    (error.code, error.line, error.column)
}

#[test]
fn rules_are_read_and_stand_in_one_order() {
    let text = r#"
        ordered_enum = { "$.status" = ["a", 1, 2.5, true] }
        monotonic_integer = ["n"]
        immutable = ["$.a.b", "c"]
        keyed_arrays.list = { key = "id", monotonic_boolean = ["done"], allow_new_items = false }
    "#;
    let rules = rules(text);
    let places: Vec<_> = rules.iter().map(|it| it.at.as_str()).collect();
    assert_eq!(places, ["/a/b", "/c", "/n", "/status", "/list"]);
    let order = ValueOrder::new(vec!["a".into(), 1.into(), 2.5.into(), true.into()]).unwrap();
    assert_eq!(rules[3].kind, TransitionRuleKind::Ordered(order));
    let keyed = KeyedListRule::new("id".to_owned(), ["done".to_owned()].into(), NewItems::Refused).unwrap();
    assert_eq!(rules[4].kind, TransitionRuleKind::Keyed(keyed));
    assert_eq!(compile("").unwrap().transitions, []);
}

#[test]
fn items_may_be_appended_unless_the_policy_says_otherwise() {
    for (text, new_items) in [("", NewItems::Allowed), (", allow_new_items = true", NewItems::Allowed)] {
        let rule = &rules(&format!("keyed_arrays.list = {{ key = \"id\"{text} }}"))[0];
        assert_eq!(
            rule.kind,
            TransitionRuleKind::Keyed(KeyedListRule::new("id".to_owned(), BTreeSet::new(), new_items).unwrap())
        );
    }
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    for (text, expected) in [
        ("immutables = []", (UnknownKey, 3, 1)),
        ("immutable = \"a\"", (WrongType, 3, 13)),
        ("immutable = [1]", (WrongType, 3, 14)),
        ("immutable = [\"a.*\"]", (BadValue, 3, 14)),
        ("immutable = [\"a..b\"]", (BadValue, 3, 14)),
        ("immutable = [\"$\"]", (BadValue, 3, 14)),
        ("immutable = [\"/a\"]", (BadValue, 3, 14)),
        ("immutable = [\"a[0]\"]", (BadValue, 3, 14)),
        ("immutable = [\"a\\u0000\"]", (BadValue, 3, 14)),
        ("immutable = [\"a\", \"$.a\"]", (BadValue, 3, 19)),
        ("ordered_enum = []", (WrongType, 3, 16)),
        ("ordered_enum = { a = \"x\" }", (WrongType, 3, 22)),
        ("ordered_enum = { a = [1] }", (BadValue, 3, 22)),
        ("ordered_enum = { a = [1, 1.0] }", (BadValue, 3, 22)),
        ("ordered_enum = { a = [1, []] }", (WrongType, 3, 26)),
        ("ordered_enum = { a = [1, 2000-01-01] }", (WrongType, 3, 26)),
        ("ordered_enum = { a = [1, inf] }", (BadValue, 3, 26)),
        ("ordered_enum = { a = [1, 12345678901234567] }", (BadValue, 3, 26)),
        ("ordered_enum = { \"$.b\" = [1, 2], b = [1, 2] }", (BadValue, 3, 34)),
        ("keyed_arrays.\"a.*\" = { key = \"id\" }", (BadValue, 3, 14)),
        ("keyed_arrays.a = {}", (Missing, 3, 18)),
        ("keyed_arrays.a = { key = \"\" }", (BadValue, 3, 26)),
        ("keyed_arrays.a = { key = 1 }", (WrongType, 3, 26)),
        ("keyed_arrays.a = { key = \"id\", order = 1 }", (UnknownKey, 3, 32)),
        ("keyed_arrays.a = { key = \"id\", allow_new_items = 1 }", (WrongType, 3, 50)),
        ("keyed_arrays.a = { key = \"id\", monotonic_boolean = [\"x\", \"x\"] }", (BadValue, 3, 58)),
        ("keyed_arrays.a = { key = \"id\", monotonic_boolean = [\"id\"] }", (BadValue, 3, 26)),
    ] {
        assert_eq!(place(text), expected, "{text}");
    }
}

#[test]
fn lists_and_orders_are_bounded() {
    let many = |count: usize| (0..count).map(|it| format!("\"k{it}\"")).collect::<Vec<_>>().join(", ");
    assert_eq!(rules(&format!("immutable = [{}]", many(256))).len(), 256);
    assert_eq!(place(&format!("immutable = [{}]", many(257))).0, TooLarge);
    assert_eq!(place(&format!("ordered_enum = {{ a = [{}] }}", many(257))).0, TooLarge);
    let keyed = |it: usize| format!("keyed_arrays.k{it} = {{ key = \"id\" }}\n");
    assert_eq!(place(&(0..257).map(keyed).collect::<String>()).0, TooLarge);
}
