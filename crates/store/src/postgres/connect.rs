//! PostgreSQL connections: the URL, TLS, the pool and the session settings.

use std::error::Error as _;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use countersign_adapters::tls;
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Row, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::super::StoreError;
use super::super::migrate::{self, OpenError};
use super::super::outage::Outage;
use super::failure::database;

/// The size of the pool: some connections write, some read batches, and some read lists.
const CONNECTIONS_MAX: usize = 12;

/// The timeout for a connection. It is longer than any network needs and shorter than a caller waits.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time after which a connection to a silent server is closed.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The time after which a request to a silent server fails. It is longer than all time-outs of the server.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(15);

/// The time that a caller waits for a free connection.
const POOL_PATIENCE: Duration = Duration::from_secs(2);

/// The key of the lock that serializes migrations.
const MIGRATION_LOCK: i64 = i64::from_be_bytes(*b"csignmig");

/// Settings of a session that is idle for long and holds a lock. A client that disappears must not keep the lock. The
/// server's defaults are hours. On a Unix socket these settings have no effect.
pub(super) const WATCHED: &str = "
    SET tcp_keepalives_idle = 10;
    SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3;
";

/// The wait for a row lock. After this time its owner is probably stuck, and other callers should not wait.
pub(super) const LOCK_WAIT: Duration = Duration::from_millis(500);

/// The settings of every session, without the wait for locks:
///
/// - A gateway that stalls in a transaction must not hold its locks forever.
/// - Plans are made once. They must use indexes even if a table was small at that time.
/// - A committed change is on the disk, whatever the server's default is.
const SESSION: &str = "
    SET statement_timeout = '10s';
    SET idle_in_transaction_session_timeout = '10s';
    SET plan_cache_mode = 'force_generic_plan';
    SET enable_seqscan = off;
    SET enable_bitmapscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET jit = off;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
";

/// The parsed address: the target and its TLS settings.
#[derive(Clone)]
pub(super) struct PostgresAddress {
    config: Config,
    tls: MakeRustlsConnect,
}

/// The task of a connection, which the caller must drive.
pub(super) type PostgresConnection = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

impl PostgresAddress {
    /// Parses the URL. Errors never repeat it, because it may contain a password.
    ///
    /// A remote server must have a certificate for its name that is signed by a trusted CA of this host or by
    /// `authority`. The URL can disable this for a trusted network (`sslmode=disable`).
    pub(super) fn read(url: &str, authority: Option<&[u8]>) -> Result<Self, OpenError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(OpenError::Url("it must start with postgres://".to_owned()));
        }
        let mut config: Config = url.parse().map_err(|error: Error| OpenError::Url(unread(url, &error)))?;
        config.ssl_mode(mode_of(&config));
        // A setting in the URL takes precedence.
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("countersign");
        }
        // Both settings detect a server that disappears without closing the connection.
        config.tcp_user_timeout(SILENCE_MAX);
        config.keepalives_idle(SILENCE_MAX);
        // The administrator expects TLS, so an unused CA is an error.
        if authority.is_some() && config.get_ssl_mode() == SslMode::Disable {
            let unused = "`database_ca_file` has no effect without TLS: use sslmode=require, or remove the setting";
            return Err(OpenError::Url(unused.to_owned()));
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => tls::nobody(),
            _ => tls::client(authority),
        };
        let tls = tls.map_err(|error| OpenError::Url(error.to_string()))?;
        Ok(Self { config, tls: MakeRustlsConnect::new(tls) })
    }

    pub(super) fn database(&self) -> Option<&str> {
        self.config.get_dbname()
    }

    pub(super) async fn connect(&self) -> Result<(Client, PostgresConnection), Error> {
        self.config.connect(self.tls.clone()).await
    }
}

/// Returns the TLS mode.
fn mode_of(config: &Config) -> SslMode {
    match (config.get_ssl_mode(), stays_here(config)) {
        (SslMode::Disable | SslMode::Prefer, true) => SslMode::Disable,
        (SslMode::Disable, false) => {
            tracing::warn!("the connection to the remote database is not encrypted: use sslmode=require in its URL");
            SslMode::Disable
        }
        // `prefer` would fall back to clear text, so an attacker on the network could disable TLS.
        _ => SslMode::Require,
    }
}

fn unread(url: &str, error: &Error) -> String {
    if url.contains("sslmode=verify-") {
        return "use sslmode=require, which checks the certificate and the name as verify-full does".to_owned();
    }
    // The name of an unknown option is not repeated, because it may be part of a password that is not escaped.
    match error.source().map(ToString::to_string).unwrap_or_default() {
        said if said.starts_with("invalid value for option") => said,
        _ => {
            "it is malformed or has an unknown option; percent-encode special characters in the password, such as %40 for @"
                .to_owned()
        }
    }
}

/// Checks that the connection stays on this host.
fn stays_here(config: &Config) -> bool {
    let here = |it: &Host| match it {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback()),
    };
    match config.get_hostaddrs() {
        // Explicit addresses take precedence over names, as in the client library.
        [] => config.get_hosts().iter().all(here),
        addresses => addresses.iter().all(IpAddr::is_loopback),
    }
}

pub(super) fn pool(address: &PostgresAddress, lock_wait: Duration) -> Result<Pool, StoreError> {
    // Fast recycling sends no query. A lost connection is found by the next statement, which is tried again.
    let recycle = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let session: Arc<str> = format!("{SESSION} SET lock_timeout = {};", lock_wait.as_millis()).into();
    let set_up = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        let session = Arc::clone(&session);
        Box::pin(async move { client.batch_execute(&session).await.map_err(HookError::Backend) })
    });
    let pool = Pool::builder(Manager::from_config(address.config.clone(), address.tls.clone(), recycle))
        .max_size(CONNECTIONS_MAX)
        .wait_timeout(Some(POOL_PATIENCE))
        .create_timeout(Some(CONNECT_TIMEOUT * 2))
        .post_create(set_up)
        .runtime(Runtime::Tokio1);
    pool.build().map_err(|error| StoreError::Database(format!("PostgreSQL: {error}")))
}

/// A connection from the pool. Unless it is returned explicitly it is closed, so an interrupted or failed caller leaves
/// no half-done transaction to the next one.
pub(super) struct PooledConnection(Option<Object>);

impl PooledConnection {
    /// Takes a free or a new connection.
    pub(super) async fn take(pool: &Pool) -> Result<Self, StoreError> {
        let taken = pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => database(&error),
            // All connections are in use, which is overload and no outage.
            PoolError::Timeout(TimeoutType::Wait) => StoreError::Busy,
            PoolError::Timeout(_) => silent(),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(HookError::Message(_)) => {
                StoreError::unavailable(Outage::Down, "PostgreSQL: the connection pool is closed")
            }
        });
        taken.map(|it| Self(Some(it)))
    }

    /// Returns the connection to the pool, without an open transaction.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Deref for PooledConnection {
    type Target = Object;
    fn deref(&self) -> &Object {
        self.0.as_ref().expect("only giving it back empties it, and that takes it")
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            // Detaching closes the connection instead of returning it to the pool.
            drop(Object::take(object));
        }
    }
}

/// Returns the error for a server that accepts connections and does not answer.
pub(super) fn silent() -> StoreError {
    StoreError::unavailable(Outage::Down, "PostgreSQL: it does not answer")
}

/// Opens the first connection, so a wrong address is noticed at once.
pub(super) async fn warm(pool: Pool) -> Result<(), StoreError> {
    PooledConnection::take(&pool).await.map(PooledConnection::give_back)
}

/// Refuses a database with missing migrations, without a change.
pub(super) async fn check_migrations(address: PostgresAddress) -> Result<(), OpenError> {
    let (client, connection) = address.connect().await.map_err(|error| database(&error))?;
    tokio::spawn(connection);
    check_encoding(&client).await?;
    let applied = client.query(migrate::SELECT_APPLIED, &[]).await.map_err(|error| database(&error))?;
    migrate::must_be_current(migrate::POSTGRES, &numbered(&applied).map_err(|error| database(&error))?)
}

fn numbered(applied: &[Row]) -> Result<Vec<(i64, String)>, Error> {
    applied.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// Applies missing migrations, one gateway at a time.
pub(super) async fn migrate(address: PostgresAddress) -> Result<(), OpenError> {
    let (mut client, connection) = address.connect().await.map_err(|error| database(&error))?;
    tokio::spawn(connection);
    check_encoding(&client).await?;
    let failed = |error: Error| OpenError::Store(database(&error));
    // One transaction for all migrations: a failed one leaves the database as it was.
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await.map_err(failed)?;
    transaction.batch_execute(migrate::CREATE_TABLE).await.map_err(failed)?;
    let applied = transaction.query(migrate::SELECT_APPLIED, &[]).await.map_err(failed)?;
    for migration in migrate::pending(migrate::POSTGRES, &numbered(&applied).map_err(failed)?)? {
        transaction.batch_execute(migration.sql).await.map_err(failed)?;
        let insert = "INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)";
        let values = (migration.version, migration.name, migration.checksum());
        transaction.execute(insert, &[&values.0, &values.1, &values.2]).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Refuses other encodings than UTF-8. Only UTF-8 sorts texts by their bytes and can store every text.
async fn check_encoding(client: &Client) -> Result<(), OpenError> {
    let row = client.query_one("SHOW server_encoding", &[]).await.map_err(|error| database(&error))?;
    let encoding: String = row.try_get(0).map_err(|error| database(&error))?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(OpenError::Store(StoreError::Database(format!("PostgreSQL: the database is in {encoding}, not UTF8"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(rest: &str) -> SslMode {
        mode_of(&format!("postgres://{rest}").parse().unwrap())
    }

    #[test]
    fn remote_connection_uses_tls_unless_the_url_disables_it() {
        let here = [
            "u@localhost/x",
            "u@127.0.0.1/x",
            "u@127.9.9.9:1/x",
            "u@[::1]/x",
            "u@%2Frun%2Fpostgresql/x",
            "u@/x?host=/run",
        ];
        let here = here.into_iter().chain(["u@localhost,127.0.0.1/x", "u@db.example/x?hostaddr=127.0.0.1"]);
        for address in here {
            assert_eq!(mode(address), SslMode::Disable, "{address}");
        }
        let beyond = ["u@db.example/x", "u@10.0.0.1/x", "u@localhost,db.example/x", "u@localhost.example/x"];
        let beyond = beyond.into_iter().chain(["u@localhost/x?hostaddr=10.0.0.1", "u@db.example/x?sslmode=prefer"]);
        for address in beyond.chain(["u@localhost/x?sslmode=require"]) {
            assert_eq!(mode(address), SslMode::Require, "{address}");
        }
        assert_eq!(mode("u@db.example/x?sslmode=disable"), SslMode::Disable);
    }

    #[test]
    fn other_modes_are_refused_with_the_one_that_does_the_same() {
        for mode in ["verify-full", "verify-ca"] {
            let refused =
                PostgresAddress::read(&format!("postgres://u:secret@db.example/x?sslmode={mode}"), None).err().unwrap();
            let said = refused.to_string();
            assert!(said.contains("sslmode=require") && !said.contains("secret"), "{said}");
        }
        assert!(PostgresAddress::read("postgresql://u@localhost/x", None).is_ok());
        assert!(PostgresAddress::read("mysql://u@localhost/x", None).is_err());
    }
}
