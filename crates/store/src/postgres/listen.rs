//! A connection that listens for commits of all gateways.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::{AsyncMessage, Error};

use super::connect::PostgresAddress;
use crate::commit_notify::CommitNotifier;

/// The name of the channel. Channels are separate per database.
pub(super) const CHANNEL: &str = "countersign_changes";

/// The delay between attempts to reconnect. Until then readers poll when their wait ends.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Forwards every notification of a commit while the store exists. An outage is logged once.
pub(super) async fn forever(address: PostgresAddress, bell: Arc<CommitNotifier>) {
    let mut connected = true;
    loop {
        let was_connected = connected;
        connected = false;
        if let Err(error) = listen(&address, &bell, &mut connected).await
            // Only the first failed attempt of an outage is logged.
            && (connected || was_connected)
        {
            tracing::warn!(%error, "notifications of other gateways' commits are not received; readers poll until the connection works again");
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

async fn listen(address: &PostgresAddress, bell: &CommitNotifier, connected: &mut bool) -> Result<(), Error> {
    let (client, mut connection) = address.connect().await?;
    *connected = true;
    // LISTEN needs the connection to be driven, which the loop below does.
    let listen = tokio::spawn(async move {
        let begun = client.batch_execute(&format!("LISTEN {CHANNEL}")).await;
        begun.map(|()| client)
    });
    // Readers check once for commits that were missed before.
    bell.ring();
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message? {
            bell.ring();
        }
    }
    drop(listen);
    Ok(())
}
