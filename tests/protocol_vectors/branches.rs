//! Forks and joins.

use super::*;

/// The names, states and confidences of a case's branches, by a policy that says which of its lists have keys.
fn joined(case: &Value) -> Result<Value, JoinRejected> {
    let keyed = case["keyed"].as_object().unwrap().iter();
    let keyed = keyed.map(|(place, key)| format!("[transitions.keyed_arrays.\"{}\"]\nkey = {key}\n", &place[1..]));
    let source = format!("flow = \"payments\"\n{}", keyed.collect::<String>());
    let policy = Policy::compile(&PolicySource { text: source, schemas: BTreeMap::new() }).unwrap();
    let named = |it: &Value| BranchName::try_from(text(it, "name")).unwrap();
    let sides: Vec<(BranchName, Value, u32)> = cases(case, "branches")
        .iter()
        .map(|it| (named(it), it["state"].clone(), u32::try_from(it["confidence"].as_u64().unwrap()).unwrap()))
        .collect();
    let sides: Vec<BranchState<'_>> =
        sides.iter().map(|(name, state, confidence)| BranchState { name, state, confidence: *confidence }).collect();
    let resolutions = case.get("resolve").map(|it| Resolutions::read(it).unwrap()).unwrap_or_default();
    let strategy: Strategy = serde_json::from_value(case["strategy"].clone()).unwrap();
    join(&case["base"], &sides, JoinOptions { strategy, policy: &policy, resolutions: &resolutions })
}

#[test]
fn branches_come_to_one_state_or_do_not_agree_at_those_places() {
    for case in cases(&vectors("joins"), "cases") {
        let places = |key: &str| -> Vec<Pointer> { serde_json::from_value(case[key].clone()).unwrap() };
        let wanted = match (case.get("result"), case.get("conflicts")) {
            (Some(state), _) => Ok(state.clone()),
            (None, Some(_)) => Err(JoinRejected::Conflicts(places("conflicts"))),
            (None, None) => Err(JoinRejected::NoConflict(places("idle").remove(0))),
        };
        assert_eq!(joined(&case), wanted, "{}", case["name"]);
    }
}

#[test]
fn forks_and_joins_have_their_names_digests_and_identities_and_no_other_form_is_one() {
    let file = vectors("branches");
    for case in cases(&file, "names") {
        let thread = ThreadId::try_from(text(&case, "thread")).unwrap();
        let name = BranchName::try_from(text(&case, "name")).unwrap();
        let found = Branch::thread_of(&thread, digest(&case, "transition"), &name);
        assert_eq!(found.as_str(), text(&case, "branch"));
    }
    check_statements(&file, "statements");
    check_identities(&file);
    let keys = PublicKeys::from_jwks(&file["jwks"]).unwrap();
    let chains = &file["chains"];
    let all = [&chains["parent"], &chains["branches"]["left"], &chains["branches"]["right"]];
    for entry in all.iter().flat_map(|it| it.as_array().unwrap()) {
        let statement: Statement = serde_json::from_value(entry["statement"].clone()).unwrap();
        let root = serde_json::from_value::<Opening>(entry["opening"].clone()).unwrap().to.root().unwrap();
        let link = ChainLink { entry: text(entry, "entry"), statement: &statement, root };
        check_link(&link, &keys, "https://countersign.example").unwrap();
    }
    // Which of what is spoiled shows in one link alone: the gate of a fork or a join.
    for case in cases(&file, "spoiled").iter().filter(|it| it["code"] == "gate") {
        let place = &case["patch"][0];
        let at = Pointer::try_from(text(place, "path").strip_suffix("/entry").unwrap()).unwrap();
        let statement: Statement = serde_json::from_value(at.resolve(chains).unwrap()["statement"].clone()).unwrap();
        let link = ChainLink { entry: text(place, "value"), statement: &statement, root: statement.to };
        assert!(check_link(&link, &keys, "https://countersign.example").is_err(), "{}", case["name"]);
    }
}
