//! `demo`: a gateway with sample flows, and a host, an agent and a writer that use it over HTTP. Reviewers decide in
//! their browser. The other steps run by themselves, slowly enough to follow.

mod accounts;
mod client;
mod enter_key;
mod export_files;
mod mcp_server;
mod receivers;
mod scenario;
mod seed_episode;
mod seed_history;
mod sign_in_links;
mod target_database;
mod tool_calls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::keyring::KeyringSource;
use countersign_adapters::random;
use countersign_service::Service;
use serde_json::json;
use tokio::sync::mpsc;

use super::args::DemoArgs;
use super::output::CommandOutput;
use super::serve::{self, ClockPolicy, RunningGateway};
use super::{CliError, CommandExit, open_service};
use crate::config::{Config, DatabaseConfig};
use client::DemoOutput;
use enter_key::EnterKey;

/// The flow of the sample history. The demo's own accounts decide its reviews.
const HISTORY_FLOW: &str = "refunds";

/// The address of the demo's own servers.
const HERE: &str = "127.0.0.1";

/// The pause between two steps of the scenario.
const PACE: Duration = Duration::from_millis(1_200);

/// How much of each request and response is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DemoDetail {
    /// The call and its result.
    Brief,
    /// The bodies too.
    Bodies,
}

/// Runs the demo until ctrl-c.
pub fn run(config: &Config, args: &DemoArgs, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    // The address is bound first, so that a start on a used port writes no files.
    let listener = serve::bind(config.listen)?;
    let bound = listener.local_addr().map_err(CliError::Runtime)?;
    say(out, &format!("The Countersign demo starts at http://localhost:{}", bound.port()))?;
    open_service::block_on(async {
        let config = demo_config(config, bound)?;
        let running = RunningGateway::start(&config, listener, ClockPolicy::Refused).await?;
        let (voice, lines) = mpsc::unbounded_channel();
        let voice = DemoOutput::new(voice);
        let (data, deadline) = (config.data.clone(), args.deadline.clone());
        let stage = DemoSetup { data, bound, detail: args.detail(), pace: PACE, deadline, voice };
        play(stage, running, lines, out).await?;
        say(out, &format!("\nStopped. The data of the demo is in {}", config.data.display()))?;
        Ok(CommandExit::Yes)
    })
}

fn say(out: &mut CommandOutput<'_>, line: &str) -> Result<(), CliError> {
    Ok(out.answer(line, || json!({"demo": line}))?)
}

/// Returns a configuration with its own folder, keyring and database, so that a configured gateway is not changed.
fn demo_config(config: &Config, bound: SocketAddr) -> Result<Config, CliError> {
    let data = std::env::temp_dir().join(format!("countersign-demo-{}", random::uuid_v4().simple()));
    Ok(Config {
        listen: bound,
        keyring: KeyringSource::File(data.join("keyring.json")),
        database: DatabaseConfig::Sqlite,
        // The printed links must lead to the demo and not to the configured gateway.
        public_url: None,
        issuer: None,
        trusted_proxies: Vec::new(),
        webhooks: receivers::settings(),
        upstreams: vec![mcp_server::start()?],
        // A page that is open in a browser must not delay ctrl-c.
        shutdown: Duration::from_secs(1),
        worker_interval: Duration::from_secs(1),
        data,
        ..config.clone()
    })
}

/// Runs the scenario and serves pages until a signal arrives.
async fn play(
    stage: DemoSetup,
    running: RunningGateway,
    mut lines: mpsc::UnboundedReceiver<String>,
    out: &mut CommandOutput<'_>,
) -> Result<(), CliError> {
    let service = Arc::clone(&running.service);
    let url = running.url.as_str().to_owned();
    let mut story = tokio::spawn(async move {
        let cast = Arc::new(accounts::engage(&service, &url, &stage).await?);
        let stage = Arc::new(stage);
        tokio::spawn(EnterKey::listen().serve(Arc::clone(&cast), Arc::clone(&stage)));
        let past = past(&service, &cast, &stage);
        let calls = tool_calls::tell(&cast, &stage);
        let links = cast.links.announce(&stage);
        tokio::try_join!(scenario::tell(&cast, &stage), calls, past, links).map(drop)
    });
    let stop = serve::wait_for_signal();
    tokio::pin!(stop);
    let mut told = false;
    let ended = loop {
        tokio::select! {
            // Printed lines come first, so that none is lost when the story or a signal ends the loop.
            biased;
            Some(line) = lines.recv() => say(out, &line)?,
            signal = &mut stop => break signal.map(drop).map_err(CliError::Runtime),
            // A task that has ended must not be polled again.
            ended = &mut story, if !told => match ended.map_err(|error| CliError::Runtime(error.into())).and_then(|it| it) {
                Ok(()) => told = true,
                Err(error) => break Err(error),
            },
        }
    };
    // The story can wait for reviewers for a long time, which must not delay the shutdown.
    story.abort();
    running.stop().await?;
    ended
}

/// Seeds sample history while the scenario starts, and adds reviews to it for a few minutes.
async fn past(service: &Arc<Service>, cast: &accounts::DemoMachines, stage: &DemoSetup) -> Result<(), CliError> {
    receivers::engage(service, &cast.admin).await?;
    let played = seed_history::DemoHistoryActors::engage(service).await?;
    played.live(&cast.admin).await?;
    let folder = played.leaves_a_run(&stage.data).await?;
    stage.voice.say(
        "\n  (The demo also seeds a third flow with sample history: its reviewers cleo and dan decided some refunds, and continue \
         for a few minutes. History, Log, Insight, People, Policies and Webhooks show it.)",
    );
    stage.voice.say(&export_files::episode_lines(&folder));
    // If a user tries the kill switch, the seeding stops and the rest of the demo continues.
    if let Err(error) = played.add_history(stage).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "no more sample history is added");
    }
    Ok(())
}

struct DemoSetup {
    data: PathBuf,
    bound: SocketAddr,
    detail: DemoDetail,
    pace: Duration,
    /// The time in which reviewers can decide, as policies write it.
    deadline: String,
    voice: DemoOutput,
}

impl DemoSetup {
    async fn pause(&self) {
        tokio::time::sleep(self.pace).await;
    }
}
