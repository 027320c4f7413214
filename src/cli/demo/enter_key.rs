//! Makes a fresh proposal for each press of Enter. Without a terminal, nothing is read.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::accounts::DemoMachines;
use super::{DemoSetup, scenario, tool_calls};
use crate::cli::CliError;

/// The lines of the terminal.
pub(super) struct EnterKey(Option<UnboundedReceiver<()>>);

impl EnterKey {
    pub(super) fn listen() -> Self {
        if !io::stdin().is_terminal() {
            return Self(None);
        }
        let (pressed, presses) = mpsc::unbounded_channel();
        // A thread of its own can stay in its read when the demo ends. The runtime would wait for a task.
        std::thread::spawn(move || {
            for _ in io::stdin().lock().lines().map_while(Result::ok) {
                if pressed.send(()).is_err() {
                    return;
                }
            }
        });
        Self(Some(presses))
    }

    /// Makes a change and a tool call in turn.
    pub(super) async fn serve(self, cast: Arc<DemoMachines>, stage: Arc<DemoSetup>) {
        let Some(mut presses) = self.0 else { return };
        stage.voice.say("\nPress Enter for a fresh proposal, at any time.");
        let mut count = 0_u32;
        while presses.recv().await.is_some() {
            count += 1;
            let (cast, stage) = (Arc::clone(&cast), Arc::clone(&stage));
            // A call waits for its decision, which must not delay the next press.
            tokio::spawn(async move {
                let made = match count % 2 {
                    1 => fresh_change(&cast, &stage, count).await,
                    _ => tool_calls::refund(&cast, &stage, &format!("B-{}", 100 + count)).await,
                };
                // A halted flow refuses proposals, and the rest of the demo goes on.
                if let Err(error) = made {
                    stage.voice.say(&format!("\n  No fresh proposal: {error}"));
                }
            });
        }
    }
}

async fn fresh_change(cast: &DemoMachines, stage: &DemoSetup, count: u32) -> Result<(), CliError> {
    let thread = format!("order-{}", 100 + count);
    stage.voice.say("\n— A fresh proposal.");
    let made = cast.host.ask(scenario::create("payments", &thread)).await?.must_be(201)?;
    let patch = json!({"target_user_id": 40 + count});
    scenario::propose(&cast.agent, &thread, made.text("transition"), patch).await?.must_be(202).map(drop)
}
