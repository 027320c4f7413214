//! Parses the configuration once into its final types. The layers are file, environment and flags; a later layer
//! overrides an earlier one.
//!
//! `config.default.toml` is compiled in. It is the only definition of the keys, their types and their defaults.

mod envelopes;
mod limits;
mod mail;
mod mcp;
mod metrics;
mod oidc;
mod settings;
#[cfg(test)]
mod tests;
mod traces;
mod url;
mod webhooks;

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_adapters::keyring::KeyringSource;
use countersign_adapters::log_sink::LogExportTarget;
use countersign_adapters::mail::MailConfig;
use countersign_adapters::network::Network;
use countersign_adapters::traces::TracesConfig;
use countersign_domain::context::Rotation;
use countersign_domain::operations::halt::LiftQuorum;
use countersign_domain::primitives::secret::Secret;
use countersign_mcp_guard::upstream::UpstreamSettings;
use countersign_web::metrics_access::MetricsAccess;

pub use limits::LimitsConfig;
pub use oidc::SignInConfig;
use settings::ConfigLayers;
pub use url::PublicUrl;
pub use webhooks::WebhooksConfig;

/// The default file, with every key and its description.
pub const DEFAULTS: &str = include_str!("../config.default.toml");

/// The accepted networks, for error messages.
const NETWORK_EXPECTED: &str = "an IP address like 10.0.0.7, or a network in CIDR notation like 10.1.0.0/16 (not /0)";

/// Command-line flags, which override the file and the environment.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--listen`
    pub listen: Option<SocketAddr>,
    /// `--data`
    pub data: Option<PathBuf>,
    /// `--database`
    pub database: Option<Secret<String>>,
}

/// The configuration of a process.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    /// Directory of the embedded database and the keyring.
    pub data: PathBuf,
    pub database: DatabaseConfig,
    /// An additional trusted CA for the database's certificate, as PEM.
    pub database_authority: Option<Vec<u8>>,
    /// The gateway's public URL, if it is set. See [`Config::public_url`].
    pub public_url: Option<PublicUrl>,
    /// The issuer of receipts, if it is set.
    pub issuer: Option<String>,
    /// Proxies whose `X-Forwarded-For` header is trusted.
    pub trusted_proxies: Vec<Network>,
    pub keyring: KeyringSource,
    /// Directory of the archived states.
    pub archives: PathBuf,
    /// How long a shutdown waits for open requests.
    pub shutdown: Duration,
    pub limits: LimitsConfig,
    /// How long people stay signed in.
    pub sessions: SessionConfig,
    /// Rotation of the secrets that nodes use to check their envelopes.
    pub node_secrets: Rotation,
    /// How many people must agree to resume after a halt.
    pub lift_needs: LiftQuorum,
    pub sign_in: SignInConfig,
    /// Who can read the metrics.
    pub metrics: MetricsAccess,
    /// Whether the API reference page is available.
    pub docs: bool,
    /// Which addresses webhooks can be sent to.
    pub webhooks: WebhooksConfig,
    /// The target of the log export, if one is set.
    pub copy_to: Option<LogExportTarget>,
    /// The mail server, if one is set.
    pub mail: Option<MailConfig>,
    /// The trace collector, if one is set.
    pub traces: Option<TracesConfig>,
    /// The MCP servers behind the gateway.
    pub upstreams: Vec<UpstreamSettings>,
    /// How often the workers look for work.
    pub worker_interval: Duration,
    pub log: LogConfig,
}

#[derive(Clone, Debug)]
pub enum DatabaseConfig {
    /// The embedded database in the data directory.
    Sqlite,
    /// The connection URL, which can contain a password.
    Postgres(Secret<String>),
}

/// How long people stay signed in.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    pub lifetime: Duration,
}

#[derive(Clone, Debug)]
pub struct LogConfig {
    pub format: LogFormat,
    pub level: tracing::Level,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    Text,
    Json,
}

/// The kind of a mistake. Its text is stable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigCode {
    Unreadable,
    Syntax,
    /// The file has a key that does not exist.
    UnknownKey,
    /// The environment has a `COUNTERSIGN_` variable that matches no key.
    UnknownVariable,
    /// A value has another type than its key.
    WrongType,
    /// A value is out of range or cannot be parsed.
    BadValue,
    /// Passwords and tokens would cross a network unencrypted.
    PlainHttp,
}

impl ConfigCode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "config_unreadable",
            Self::Syntax => "config_syntax",
            Self::UnknownKey => "config_unknown_key",
            Self::UnknownVariable => "config_unknown_variable",
            Self::WrongType => "config_wrong_type",
            Self::BadValue => "config_bad_value",
            Self::PlainHttp => "config_plain_http",
        }
    }
}

/// The source of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigOrigin {
    Default,
    File {
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("by default"),
            Self::File { path, line } => write!(f, "{} line {line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A mistake in the configuration, with its key, its source and the correction. It never quotes a secret.
#[derive(Debug, thiserror::Error)]
#[error("{key} ({origin}): {problem} [{}]", code.as_str())]
pub struct ConfigError {
    pub code: ConfigCode,
    /// The key, or the text in the place of a key.
    pub key: String,
    pub origin: ConfigOrigin,
    /// The mistake and how to correct it.
    pub problem: String,
}

impl Config {
    /// Reads all layers. `environment` is the whole environment: variables that do not begin with `COUNTERSIGN_` are
    /// ignored.
    pub fn load(
        flags: &Flags,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut settings = ConfigLayers::defaults();
        let variables = settings::ours(environment)?;
        // A flag wins over the variable. An empty variable means not set, as in container files.
        let file = match (&flags.config, variables.get(settings::CONFIG_VARIABLE)) {
            (Some(path), _) => Some(path.clone()),
            (None, Some(path)) if !path.expose().is_empty() => Some(PathBuf::from(path.expose())),
            (None, _) => None,
        };
        if let Some(path) = file {
            settings.file(&path)?;
        }
        settings.variables(variables)?;
        settings.flags(flags)?;
        Self::read(&mut settings)
    }

    /// Returns the public URL. Without a configured one, this is localhost with the bound port.
    pub fn public_url(&self, bound: SocketAddr) -> PublicUrl {
        self.public_url.clone().unwrap_or_else(|| PublicUrl::local(bound.port()))
    }

    /// Returns the path of the embedded database's file.
    pub fn sqlite_path(&self) -> PathBuf {
        self.data.join("countersign.db")
    }

    fn read(settings: &mut ConfigLayers) -> Result<Self, ConfigError> {
        let data = PathBuf::from(settings.text("data", "a directory", |it| (!it.is_empty()).then(|| it.to_owned()))?);
        let config = Self {
            keyring: read_keyring(settings, &data)?,
            archives: settings
                .optional("archives", "a directory", |it| Some(it.into()))?
                .unwrap_or(data.join("archives")),
            listen: settings.text("listen", "an IP address and a port, like 127.0.0.1:8480", |it| it.parse().ok())?,
            database: settings.text("database", "empty, or postgres://user@host/name", read_database)?,
            database_authority: oidc::read_file(settings, "database_ca_file")?,
            public_url: settings.optional("public_url", url::EXPECTED, PublicUrl::parse)?,
            issuer: settings.optional("issuer", "a name without spaces, preferably a URI", read_issuer)?,
            trusted_proxies: settings.list("trusted_proxies", NETWORK_EXPECTED, Network::parse)?,
            shutdown: settings.secs("shutdown_secs", 0..=600)?,
            limits: LimitsConfig::read(settings)?,
            node_secrets: envelopes::read(settings)?,
            lift_needs: read_lift_needs(settings.number("halts.lift_needs", 1..=2)?),
            sessions: SessionConfig { lifetime: settings.secs("sessions.lifetime_secs", 60..=31_536_000)? },
            sign_in: SignInConfig::read(settings)?,
            metrics: metrics::read_access(settings)?,
            docs: settings.flag("docs")?,
            webhooks: WebhooksConfig::read(settings)?,
            copy_to: metrics::read_log_export(settings)?,
            mail: mail::read(settings)?,
            traces: traces::read(settings)?,
            upstreams: mcp::read(settings)?,
            worker_interval: Duration::from_millis(settings.number("workers.interval_ms", 10..=60_000)?),
            log: LogConfig {
                format: settings.text("log.format", "text or json", read_log_format)?,
                level: settings.text("log.level", "error, warn, info, debug or trace", |it| it.parse().ok())?,
            },
            data,
        };
        // This check needs several keys, so it runs after all of them are read.
        config.require_encryption_for_remote_hosts(settings)?;
        Ok(config)
    }

    /// Refuses a configuration that would send secrets over the network unencrypted. The gateway serves plain HTTP, so
    /// remote hosts must reach it through a reverse proxy with TLS.
    fn require_encryption_for_remote_hosts(&self, settings: &ConfigLayers) -> Result<(), ConfigError> {
        // Only processes on this host can connect, so nothing crosses a network.
        if self.listen.ip().is_loopback() {
            return Ok(());
        }
        if self.trusted_proxies.is_empty() {
            return Err(settings.refuse(
                ConfigCode::PlainHttp,
                "listen",
                "other hosts can reach this address, and the gateway serves plain HTTP: listen on 127.0.0.1, or put a \
                 TLS reverse proxy in front and list its address in `trusted_proxies`",
            ));
        }
        match &self.public_url {
            // Without https in the public URL cookies would not be `Secure`, and links would be unencrypted.
            Some(url) if url.is_secure() => Ok(()),
            _ => Err(settings.refuse(
                ConfigCode::PlainHttp,
                "public_url",
                "behind a reverse proxy it must be the public https:// URL of that proxy",
            )),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::read(&mut ConfigLayers::defaults()).expect("the compiled-in defaults are read by a test")
    }
}

fn read_keyring(settings: &mut ConfigLayers, data: &Path) -> Result<KeyringSource, ConfigError> {
    let origin = settings.origin("keyring");
    // A keyring is a JSON object, and no sensible path begins with a brace.
    let whole = |text: &str| text.trim_start().starts_with('{');
    let source = settings.text("keyring", "a path", |text| match text {
        "" => Some(KeyringSource::File(data.join("keyring.json"))),
        text if whole(text) => Some(KeyringSource::Given(Secret::new(text.to_owned()))),
        text => Some(KeyringSource::File(PathBuf::from(text))),
    })?;
    match (&source, origin) {
        // Configuration files are often in version control, where keys must not be.
        (KeyringSource::Given(_), ConfigOrigin::File { path, line }) => Err(ConfigError {
            code: ConfigCode::BadValue,
            key: "keyring".to_owned(),
            origin: ConfigOrigin::File { path, line },
            problem: "a configuration file must not contain keys: set a path here, or set COUNTERSIGN_KEYRING"
                .to_owned(),
        }),
        _ => Ok(source),
    }
}

fn read_database(text: &str) -> Option<DatabaseConfig> {
    match text {
        "" => Some(DatabaseConfig::Sqlite),
        url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Some(DatabaseConfig::Postgres(Secret::new(url.to_owned())))
        }
        _ => None,
    }
}

fn read_issuer(text: &str) -> Option<String> {
    let fits = text.len() <= countersign_domain::keys::ISSUER_CHARS_MAX && text.bytes().all(|it| it.is_ascii_graphic());
    fits.then(|| text.to_owned())
}

const fn read_lift_needs(number: u8) -> LiftQuorum {
    match number {
        ..=1 => LiftQuorum::One,
        2.. => LiftQuorum::Two,
    }
}

fn read_log_format(text: &str) -> Option<LogFormat> {
    match text {
        "text" => Some(LogFormat::Text),
        "json" => Some(LogFormat::Json),
        _ => None,
    }
}
