//! `serve`: runs the gateway until a signal stops it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use countersign_adapters::log_sink::LogExportTarget;
use countersign_adapters::mail::Mailer;
use countersign_mcp_guard::upstream::McpUpstreams;
use countersign_service::Service;
use countersign_store::sqlite::SqliteOpenMode;
use countersign_web::api::interrupts;
use countersign_web::client_ip::TrustedProxies;
use countersign_web::limits::quota::CallerQuota;
use countersign_web::limits::rate_limit::RateLimiter;
use countersign_web::limits::request_body::RequestBodyLimits;
use countersign_web::limits::response_buffer;
use countersign_web::limits::sse::EventStreams;
use countersign_web::pages::identity::oidc;
use countersign_web::pages::reviews::reveal;
use countersign_web::server::serve;
use countersign_web::state::{AppState, EdgeConfig};
use serde_json::json;
use tokio::task::JoinHandle;

use super::output::CommandOutput;
use super::{CliError, CommandExit, logging, open_service};
use crate::config::{Config, LimitsConfig, PublicUrl};
use crate::wiring;
use crate::worker::Workers;

/// Serves until a signal arrives.
pub fn run(config: &Config, back: ClockPolicy, out: &mut CommandOutput<'_>) -> Result<CommandExit, CliError> {
    // The first subscriber of a process stays. Only tests call `serve` twice in one process, so the error is ignored.
    let _ = logging::begin(&config.log);
    // The listener is bound before the database is opened, so that a second start does not migrate it.
    let listener = bind(config.listen)?;
    open_service::block_on(async {
        let running = RunningGateway::start(config, listener, back).await?;
        match &config.copy_to {
            // The log export goes to standard output, and its collector must not receive the link that creates the
            // first account.
            Some(LogExportTarget::Stdout) => {
                say(&running, &mut CommandOutput::new(out.form(), &mut io::stderr())).await?
            }
            Some(LogExportTarget::File(_)) | None => say(&running, out).await?,
        }
        running.serve_until_signal().await?;
        Ok(CommandExit::Yes)
    })
}

/// Binds the address before anything else, so that a start on a used port changes nothing.
pub fn bind(address: SocketAddr) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => {
            // The suggestion is the next port. It is not checked, because it could be taken a moment later.
            let port = address.port().checked_add(1).unwrap_or(0);
            CliError::Taken { address, address_free: SocketAddr::new(address.ip(), port) }
        }
        _ => CliError::Listen { address, source },
    })
}

async fn say(running: &RunningGateway, out: &mut CommandOutput<'_>) -> Result<(), CliError> {
    let url = &running.url;
    let set_up = running.service.identity.set_up_link().await?.map(|secret| format!("{url}/set-up/{secret}"));
    let mut text = format!("Countersign listens at {url}");
    if let Some(link) = &set_up {
        text.push_str(&format!("\nThere is no account yet. Create the first one within an hour: {link}"));
    }
    Ok(out.answer(text, || json!({"listening": url.as_str(), "set_up": set_up}))?)
}

/// Whether to start with a clock that is behind the newest event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockPolicy {
    /// The gateway does not start. An earlier time would make expired leases and links valid again.
    Refused,
    /// An administrator confirms that the clock was ahead before and is correct now.
    Allowed,
}

pub struct RunningGateway {
    pub service: Arc<Service>,
    /// The public URL.
    pub url: PublicUrl,
    handle: ServerHandle,
    streams: EventStreams,
    server: JoinHandle<io::Result<()>>,
    workers: Workers,
}

impl RunningGateway {
    /// Opens the configured gateway and serves it on a bound listener.
    pub async fn start(config: &Config, listener: TcpListener, back: ClockPolicy) -> Result<Self, CliError> {
        let bound = listener.local_addr().map_err(CliError::Runtime)?;
        let url = config.public_url(bound);
        let service = wiring::open(config, url.as_str().to_owned(), SqliteOpenMode::Serving).await?;
        // This check runs before the first request, because an expired lease could otherwise become valid again.
        if let (ClockPolicy::Refused, Some(behind)) = (back, service.log.clock_behind().await?) {
            return Err(CliError::Clock(behind));
        }
        let client = wiring::http_client(config).map_err(|error| CliError::Runtime(io::Error::other(error)))?;
        let upstreams = McpUpstreams::new(&config.upstreams, &client, &config.data.join("mcp"));
        let upstreams = upstreams
            .map_err(|source| CliError::Read { what: "the pinned tools of an MCP server".to_owned(), source })?;
        let edge = EdgeConfig { upstreams, ..edge(config, &url) };
        // The shutdown closes the streams, and the application state moves into the server.
        let streams = edge.streams.clone();
        let app = AppState::new(Arc::clone(&service), Arc::new(edge));
        // Requests are mostly I/O, so one worker per core is enough.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let server = serve(app, listener, threads, config.shutdown).map_err(CliError::Runtime)?;
        // The handle is taken here, because the server moves into its task.
        let handle = server.handle();
        let server = tokio::spawn(server);
        let mut workers = Workers::start(&service, config.worker_interval);
        if let Some(to) = &config.copy_to {
            workers = workers.copying(&service, to);
        }
        if let Some(mail) = &config.mail {
            let mailer = Mailer::new(mail).map_err(|error| CliError::Runtime(io::Error::other(error)))?;
            workers = workers.telling(&service, &mailer, mail.digests);
        }
        tracing::info!(listen = %bound, url = url.as_str(), "started");
        Ok(Self { service, url, handle, streams, server, workers })
    }

    /// Serves until SIGTERM or ctrl-c, or until the server fails, and then shuts down gracefully. If the database is
    /// replaced, it shuts down with an error.
    pub async fn serve_until_signal(mut self) -> Result<(), CliError> {
        tokio::select! {
            // Commits to a deleted file would be lost when the process ends.
            how = self.service.operations.database_replaced() => {
                tracing::error!(%how, "stopping: the database is no longer the one that was opened");
                self.stop().await?;
                return Err(CliError::Replaced(how));
            }
            signal = wait_for_signal() => tracing::info!(signal = signal.map_err(CliError::Runtime)?, "stopping"),
            ended = &mut self.server => return Err(CliError::Runtime(server_ended(ended))),
        }
        self.stop().await
    }

    /// Accepts no new requests, waits for open ones, and stops the workers.
    pub async fn stop(self) -> Result<(), CliError> {
        // Streams end first: the server would wait for them until its time limit.
        self.streams.close();
        self.handle.stop(true).await;
        // Workers stop after the server, because open requests can still create work for them.
        self.workers.stop().await;
        let ended = self.server.await;
        ended.map_err(io::Error::other).and_then(|it| it).map_err(CliError::Runtime)?;
        // The traces are sent last, because open requests and deliveries add spans until they end.
        self.service.core.traces().end().await;
        tracing::info!("stopped");
        Ok(())
    }
}

fn server_ended(ended: Result<io::Result<()>, tokio::task::JoinError>) -> io::Error {
    match ended {
        Ok(Ok(())) => io::Error::other("the server ended by itself"),
        Ok(Err(error)) => error,
        Err(error) => io::Error::other(error),
    }
}

/// Waits for a signal and returns its name.
pub async fn wait_for_signal() -> io::Result<&'static str> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            _ = term.recv() => Ok("SIGTERM"),
            _ = interrupt.recv() => Ok("SIGINT"),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.map(|()| "ctrl-c")
}

/// The limit on all requests that wait for decisions. Each holds a connection and reads its decision after every
/// commit.
const WAITS_MAX: usize = 10_000;

fn edge(config: &Config, url: &PublicUrl) -> EdgeConfig {
    let LimitsConfig { rate_per_sec, burst, .. } = config.limits;
    let requests = match rate_per_sec {
        Some(rate) => RateLimiter::new(burst, Duration::from_secs(1) / rate.get()),
        // A bucket of this size that refills at once is no limit.
        None => RateLimiter::new(u32::MAX, Duration::ZERO),
    };
    EdgeConfig {
        body_bytes_max: config.limits.body_bytes,
        depth_max: config.limits.depth,
        wait_max: config.limits.wait,
        secure: url.is_secure(),
        cookie_suffix: url.port().map(|port| format!("-{port}")).unwrap_or_default(),
        origin: url.as_str().to_owned(),
        peers: TrustedProxies::new(config.trusted_proxies.clone()),
        requests,
        elsewhere: oidc::throttle(),
        reveals: reveal::throttle(),
        posts: interrupts::throttle(),
        metrics: config.metrics,
        docs: config.docs,
        hearing: RequestBodyLimits::default(),
        unread: CallerQuota::new(response_buffer::OF_ONE_BYTES_MAX, response_buffer::ALL_BYTES_MAX),
        waits: CallerQuota::new(config.limits.waiting, WAITS_MAX),
        streams: EventStreams::default(),
        upstreams: McpUpstreams::default(),
    }
}
