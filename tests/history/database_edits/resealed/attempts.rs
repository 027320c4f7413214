//! Holds of one effect: more than the policy allows, and one that is not what was rewritten.

use countersign_domain::primitives::time::Timestamp;

use super::*;

/// As many attempts as a policy allows where it names no number.
const ATTEMPTS: usize = 3;

/// A node that asked for the same too often, and a rewrite that counts as another change than the rewritten one.
pub fn asked_again(bench: &mut ResealHarness) {
    let keys = std::sync::Arc::clone(&bench.keys);
    let seal = |body: &Value| seal_of(Table::Holds)(keys.row(), body, 1).unwrap();
    let is_rewrite = |hold: &StoredRow| {
        let of = |it: &StoredRow| it.body["digest"] == hold.body["transition"] && it.body["editor"].is_string();
        rows(&bench.connection, Table::Transitions).iter().any(of)
    };
    let own = bench.pick(Table::Holds, |it| it.body["effect"].is_string() && !is_rewrite(it));
    let rewrite = bench.pick(Table::Holds, |it| it.body["effect"].is_string() && is_rewrite(it));

    let opened_at = Timestamp::parse(own.body["opened_at"].as_str().unwrap()).unwrap();
    let attempts: Vec<SealedRow> = (1..=ATTEMPTS)
        .map(|number| {
            let mut before = own.body.clone();
            before["id"] = json!(format!("before-{number}"));
            before["transition"] = json!(format!("sha256:{}", number.to_string().repeat(64)));
            before["opened_at"] = json!(opened_at.minus(Duration::from_secs(1)));
            before["state"] = json!({"state": "expired", "at": opened_at});
            seal(&before)
        })
        .collect();
    let (last, others) = attempts.split_last().unwrap();
    for row in others {
        assert!(bench.edit(Table::Holds, None, Some(row)));
    }
    bench.beside(Table::Holds, last, "the node had no attempt left for this change");
    for row in others {
        bench.undo(Table::Holds, None, Some(row));
    }

    let mut another = rewrite.body.clone();
    another["effect"] = json!(format!("sha256:{}", "0".repeat(64)));
    let finding = "the effect of the review differs from the request that was rewritten";
    bench.instead(Table::Holds, &rewrite, &another, finding);
}
