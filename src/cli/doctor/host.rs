//! Checks what a gateway needs from its host and network: disk, public address, proxy, mail server and receivers.

use std::time::Duration;

use countersign_adapters::http_client::{HttpClient, HttpClientSettings, HttpOutcome};
use countersign_adapters::mail::Mailer;
use countersign_adapters::network::Network;
use countersign_domain::delivery::endpoint::{DisabledReason, EndpointState};
use countersign_domain::operations::finding::{FindingCode, SetupFinding};
use countersign_service::Service;
use countersign_service::delivery::endpoints::EndpointDetails;
use countersign_service::error::Result;
use futures_util::future::join_all;
use url::Url;

use crate::config::{Config, DatabaseConfig};
use crate::wiring;

/// The time limit of each connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// Below this, a busy gateway can fill the disk before anyone reads a warning.
const DISK_BYTES_MIN: u64 = 1 << 30;

/// All addresses. The operator wrote the public URL, and it is often a private address.
const ANYWHERE: [&str; 4] = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"];

/// Returns the problems of the host and its network.
pub async fn findings(config: &Config, service: &Service) -> Result<Vec<SetupFinding>> {
    let mut findings: Vec<SetupFinding> = disk(config).into_iter().chain(proxy(config)).chain(copy(config)).collect();
    findings.extend(public_url(config).await);
    findings.extend(mail(config).await);
    findings.extend(receivers(config, &service.delivery.endpoints().await?).await);
    Ok(findings)
}

fn disk(config: &Config) -> Option<SetupFinding> {
    let stats = rustix::fs::statvfs(&config.data).ok()?;
    let free = stats.f_bavail.saturating_mul(stats.f_frsize);
    (free < DISK_BYTES_MIN).then(|| {
        SetupFinding::problem(
            FindingCode::LowDisk,
            format!(
                "The file system of {} has {} MiB left. A full disk stops every commit.",
                config.data.display(),
                free >> 20
            ),
            "Free some space, move the data directory, or archive versions with [retain] in the policy.".to_owned(),
        )
    })
}

/// The gateway itself speaks plain HTTP, so a public https address means a proxy.
fn proxy(config: &Config) -> Option<SetupFinding> {
    let is_behind_proxy = config.public_url.as_ref().is_some_and(|it| it.is_secure());
    (is_behind_proxy && config.trusted_proxies.is_empty()).then(|| {
        SetupFinding::warning(
            FindingCode::ProxyNotTrusted,
            "public_url is https, so a proxy is in front of the gateway, and trusted_proxies is empty. All clients have the address of the proxy, and share one limit for failed sign-ins.".to_owned(),
            "Set trusted_proxies to the address of the proxy, and let it set X-Forwarded-For.".to_owned(),
        )
    })
}

/// Checks for a log export. Backups leave no trace in the database, so they cannot be checked.
fn copy(config: &Config) -> Option<SetupFinding> {
    let is_local = config.public_url.as_ref().is_none_or(|it| !it.is_secure());
    let is_alone = matches!(config.database, DatabaseConfig::Sqlite) && config.copy_to.is_none();
    (is_alone && !is_local).then(|| {
        SetupFinding::warning(
            FindingCode::NoCopy,
            "The audit log is on this disk only: no log export is set.".to_owned(),
            "Set siem.output, and back up the database and the keyring as in docs/guides/backup.md.".to_owned(),
        )
    })
}

async fn public_url(config: &Config) -> Option<SetupFinding> {
    let public = config.public_url.as_ref()?;
    let allowed = ANYWHERE.iter().filter_map(|it| Network::parse(it)).collect();
    let client = HttpClient::new(HttpClientSettings { allowed, plain_http: true, timeout: PATIENCE }).ok()?;
    let url = Url::parse(&format!("{}/livez", public.as_str())).ok()?;
    let problem = match client.get(&url, &[], 1).await {
        HttpOutcome::Answered(answer) if answer.status == 200 => return None,
        HttpOutcome::Answered(answer) => format!("it returned {}", answer.status),
        HttpOutcome::Failed(failure) => failure.why.sentence().to_owned(),
    };
    Some(SetupFinding::warning(
        FindingCode::PublicUrlUnreachable,
        format!("The gateway cannot be reached at its public URL {} from this host: {problem}", public.as_str()),
        "Check the proxy, its certificate and the name. Links in mails and chats begin with this URL.".to_owned(),
    ))
}

async fn mail(config: &Config) -> Option<SetupFinding> {
    let settings = config.mail.as_ref()?;
    let checked = match Mailer::new(settings) {
        Ok(mailer) => mailer.check().await,
        Err(error) => Err(error),
    };
    let error = checked.err()?;
    Some(SetupFinding::problem(
        FindingCode::MailUnusable,
        format!("No mail can be sent through {}: {error}.", settings.server),
        "Correct the section [mail] of the configuration.".to_owned(),
    ))
}

/// Checks the receivers of all endpoints at once.
async fn receivers(config: &Config, endpoints: &[EndpointDetails]) -> Vec<SetupFinding> {
    let Ok(client) = wiring::http_client(config) else { return Vec::new() };
    let client = &client;
    join_all(endpoints.iter().map(|it| async move { receiver(client, it).await })).await.into_iter().flatten().collect()
}

/// Only connects: a request without credentials and content changes nothing at a receiver.
async fn receiver(client: &HttpClient, told: &EndpointDetails) -> Option<SetupFinding> {
    let (name, origin) = (&told.endpoint.name, &told.endpoint.origin);
    let see = format!("Correct the address on the page Endpoints, or run its test. Deliveries wait for {origin}.");
    let problem = match told.endpoint.state {
        EndpointState::Disabled { why: DisabledReason::ByHand, .. } | EndpointState::Removed { .. } => return None,
        EndpointState::Disabled { .. } => "The gateway disabled it, because its deliveries failed.".to_owned(),
        EndpointState::Enabled {} => {
            let url = Url::parse(origin).ok()?;
            match client.get(&url, &[], 1).await {
                HttpOutcome::Answered(_) => return None,
                HttpOutcome::Failed(failure) => failure.why.sentence().to_owned(),
            }
        }
    };
    let detail = format!("The endpoint {name} at {origin} does not work. {problem}");
    Some(SetupFinding::warning(FindingCode::EndpointUnreachable, detail, see))
}
