//! A thread whose past has left the database.

use std::collections::BTreeSet;
use std::path::Path;

use countersign_domain::identity::account::MachineRole;

use countersign_adapters::archives::Archives;
use countersign_service::Service;
use countersign_service::archive::move_versions::ArchiveScanCursor;
use serde_json::json;

use super::{HistoryActors, admin, example, make, propose, token};

/// Returns the archives of the history in a folder.
pub fn in_folder(folder: &Path) -> Archives {
    Archives::in_folder(folder.join("archives"))
}

/// As many as the shortest archive has, and one that stays.
const VERSIONS: u32 = 17;

pub async fn outgrows_the_database(service: &Service, _: &HistoryActors) {
    let mut source = example("payments");
    source.text = source.text.replacen("flow = \"payments\"", "flow = \"kept\"", 1);
    source.text.push_str("\n[retain]\nversions = 1\n");
    service.policy_changes.activate_policy(&admin(), None, source, BTreeSet::new()).await.unwrap();
    let host = token(service, MachineRole::Host, "kept", &[]).await;
    let agent = token(service, MachineRole::Agent, "kept", &["input_parser"]).await;
    make(service, &host, "long").await;
    for version in 1..VERSIONS {
        // Each text is more than half of the state, so that the gateway stores each state whole.
        let text = format!("text {version}, and so on. ").repeat(20);
        propose(service, &agent, "long", "input_parser", json!({"raw_text": text})).await;
    }
    assert_eq!(
        service.archive.retain(&mut ArchiveScanCursor::default()).await.unwrap(),
        1,
        "all but the last are in an archive"
    );
}
