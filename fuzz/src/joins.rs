//! What comes of branches: a state, and what each of up to four branches made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use countersign_domain::json::canonical::canonical;
use countersign_domain::json::diff::{diff, leaves};
use countersign_domain::policy::{Policy, PolicySource};
use countersign_domain::primitives::id::BranchName;
use countersign_domain::threads::branch::Strategy;
use countersign_domain::threads::join::{BranchState, JoinOptions, JoinRejected, Resolutions, changed, join};
use serde_json::{Value, json};

/// Branches of one input: what goes wrong between four goes wrong between more.
const BRANCHES_MAX: usize = 4;

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let text = "flow = \"f\"\n[transitions.keyed_arrays.\"found\"]\nkey = \"id\"\n[nodes.n]\nreads = [\"a\"]\n";
    Policy::compile(&PolicySource { text: text.to_owned(), schemas: BTreeMap::new() }).expect("a policy of ours")
});

struct JoinInput<'v> {
    base: &'v Value,
    names: Vec<BranchName>,
    states: &'v [Value],
}

impl JoinInput<'_> {
    fn joined(&self, order: &[usize], strategy: Strategy, resolve: &Value) -> Result<Value, JoinRejected> {
        let resolutions = Resolutions::read(resolve).expect("they are of the right form");
        let side = |it: &usize| BranchState { name: &self.names[*it], state: &self.states[*it], confidence: 500_000 };
        let sides: Vec<BranchState<'_>> = order.iter().map(side).collect();
        join(self.base, &sides, JoinOptions { strategy, policy: &POLICY, resolutions: &resolutions })
    }
}

/// Whatever branches made of whatever they began with: the join's promises hold.
pub fn check(text: &[u8]) {
    let parts: Vec<Option<Value>> =
        super::parts(text).iter().take(BRANCHES_MAX + 1).map(|it| super::value(Some(it))).collect();
    let Some(parts) = parts.into_iter().collect::<Option<Vec<Value>>>() else { return };
    let Some((base, states)) = parts.split_first() else { return };
    // A thread's state is an object.
    if states.is_empty() || !parts.iter().all(Value::is_object) {
        return;
    }
    let name = |it: usize| BranchName::try_from(format!("b{it}").as_str()).expect("a letter and a digit are a name");
    let branches = JoinInput { base, names: (0..states.len()).map(name).collect(), states };
    alone(&branches);
    whatever_the_order(&branches);
    settled(&branches);
    nothing_of_nobody(&branches);
}

/// One branch is joined to what it has, a branch that changed nothing has no say, and equal ones agree.
fn alone(branches: &JoinInput<'_>) {
    let none = json!([]);
    for (at, state) in branches.states.iter().enumerate() {
        for strategy in [Strategy::Union, Strategy::LastWrite, Strategy::Vote, Strategy::Confidence, Strategy::Explicit]
        {
            assert_eq!(branches.joined(&[at], strategy, &none).as_ref(), Ok(state));
        }
        let pair = [state.clone(), branches.base.clone(), state.clone()];
        let pair = JoinInput { base: branches.base, names: three(), states: &pair };
        assert_eq!(pair.joined(&[0, 1], Strategy::Union, &none).as_ref(), Ok(state), "an idle branch has no say");
        assert_eq!(pair.joined(&[0, 2], Strategy::Union, &none).as_ref(), Ok(state), "who agrees has no conflict");
    }
}

fn three() -> Vec<BranchName> {
    ["x", "y", "z"].iter().map(|it| BranchName::try_from(*it).expect("a letter is a name")).collect()
}

/// Where order is not asked for, it does not count; and every strategy is the same each time.
fn whatever_the_order(branches: &JoinInput<'_>) {
    let (none, order) = (json!([]), (0..branches.states.len()).collect::<Vec<_>>());
    let turned: Vec<usize> = order.iter().rev().copied().collect();
    let union = branches.joined(&order, Strategy::Union, &none);
    assert_eq!(branches.joined(&turned, Strategy::Union, &none), union);
    for strategy in [Strategy::LastWrite, Strategy::Vote, Strategy::Confidence] {
        let joined = branches.joined(&order, strategy, &none);
        assert_eq!(joined, branches.joined(&order, strategy, &none), "joined twice, it is two things");
        assert!(joined.is_ok(), "it settles every conflict");
        if union.is_ok() {
            assert_eq!(joined, union, "what is no conflict is nobody's to settle");
        }
    }
}

/// What a union names are exactly the conflicts: settled one by one, nothing is left.
fn settled(branches: &JoinInput<'_>) {
    let order: Vec<usize> = (0..branches.states.len()).collect();
    let Err(JoinRejected::Conflicts(places)) = branches.joined(&order, Strategy::Union, &json!([])) else {
        let idle = json!([{"path": "/n0-such-pl4ce", "value": 1}]);
        let refused = branches.joined(&order, Strategy::Explicit, &idle);
        assert!(matches!(refused, Err(JoinRejected::NoConflict(_))), "{refused:?}");
        return;
    };
    assert!(!places.is_empty() && places.is_sorted());
    assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), places.len(), "each once");
    let all: Value = places.iter().map(|it| json!({"path": it, "value": "s3ttled"})).collect();
    // More than a request settles are refused before anything is joined.
    if Resolutions::read(&all).is_err() {
        return;
    }
    let joined = branches.joined(&order, Strategy::Explicit, &all).expect("every conflict is settled");
    let settled = leaves(&joined).into_iter().filter(|it| it.1 == "s3ttled").count();
    assert!(settled >= places.len(), "{places:?}: {joined}");
    let less: Value = all.as_array().into_iter().flatten().skip(1).cloned().collect();
    assert!(branches.joined(&order, Strategy::Explicit, &less).is_err(), "one is left");
}

/// Every value comes from somebody, and without lists nothing changes that no branch has changed.
fn nothing_of_nobody(branches: &JoinInput<'_>) {
    let order: Vec<usize> = (0..branches.states.len()).collect();
    let all = || [branches.base].into_iter().chain(branches.states);
    let known: BTreeSet<String> = all().flat_map(|it| leaves(it)).map(|it| canonical(it.1)).collect();
    let has_lists = all().any(|it| canonical(it).contains('['));
    for strategy in [Strategy::LastWrite, Strategy::Vote, Strategy::Confidence] {
        let Ok(joined) = branches.joined(&order, strategy, &json!([])) else { continue };
        for (place, leaf) in leaves(&joined) {
            let emptied = matches!(leaf, Value::Object(it) if it.is_empty()) || leaf == &json!([]);
            assert!(emptied || known.contains(&canonical(leaf)), "{place:?} has what nobody had");
        }
        let touched = changed(branches.base, branches.states.iter());
        let changes = diff(branches.base, &joined).into_iter().filter(|it| !it.is_filling(branches.base, &joined));
        for change in changes.filter(|_| !has_lists) {
            let near = touched.iter().any(|it| it.touches(&change.pointer));
            assert!(near, "{change:?}: nobody touched it");
        }
    }
}
