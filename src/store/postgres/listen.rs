//! One connection that hears when anybody commits.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::{AsyncMessage, Error};

use super::connect::PostgresAddress;
use crate::store::commit_notify::CommitNotifier;

/// The channel's name; each database has its own of that name.
pub(super) const CHANNEL: &str = "countersign_changes";

/// Between attempts to hear again. Until then readers look when their patience ends.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Rings for every commit anybody tells of, for as long as the store lives. An outage is logged once.
pub(super) async fn forever(address: PostgresAddress, bell: Arc<CommitNotifier>) {
    let mut connected = true;
    loop {
        let was_connected = connected;
        connected = false;
        if let Err(error) = listen(&address, &bell, &mut connected).await
            && (connected || was_connected)
        {
            tracing::warn!(%error, "changes of other gateways are not heard of");
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

async fn listen(address: &PostgresAddress, bell: &CommitNotifier, connected: &mut bool) -> Result<(), Error> {
    let (client, mut connection) = address.connect().await?;
    *connected = true;
    let listen = tokio::spawn(async move {
        let begun = client.batch_execute(&format!("LISTEN {CHANNEL}")).await;
        begun.map(|()| client)
    });
    // Whatever was missed before is looked for now.
    bell.ring();
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message? {
            bell.ring();
        }
    }
    drop(listen);
    Ok(())
}
