//! Tests that one deadline with broken stored data does not keep other deadlines from expiring.

use std::time::Duration;

use countersign_domain::interrupts::Interrupt;
use countersign_domain::primitives::id::FlowId;

use countersign::worker::expire;

use crate::attacks::policy_with;
use crate::rules::ApiScenario;

on_both! {
    broken_deadline_does_not_block_other_deadlines,
}

fn policy() -> String {
    policy_with("ttl = \"24h\"", "ttl = \"1h\"")
}

async fn broken_deadline_does_not_block_other_deadlines(scene: ApiScenario) {
    let g = &scene.gateway;
    let broken = g.post("/v1/interrupts", &g.host, crate::interrupts::asked()).await.expect(202);
    let broken = broken["id"].as_str().unwrap();
    scene.retells(broken, |it: Interrupt| Interrupt { flow: FlowId::try_from("gone").unwrap(), ..it }).await;
    let held = g.held(&g.thread().await).await;
    g.pass(Duration::from_secs(2 * 3600));
    assert_eq!(g.service.core.holds_due().await.unwrap().len(), 1);
    let refused = expire::run_once(&g.service).await.unwrap_err();
    assert!(refused.is_of_what_is_told(), "the run says that it failed: {refused:?}");
    assert_eq!(g.service.core.holds_due().await.unwrap(), [], "and has ended the hold all the same");
    assert_eq!(g.decision(&held).await.expect(200)["decision"], "expired");
}
