//! Connections: how the address is read, how a session is set up, and what is said when something fails.

use std::error::Error as _;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

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
use crate::tls;

/// A few that write, a few that read what waits together, and some for lists.
const CONNECTIONS_MAX: usize = 12;

/// Longer than any network takes, shorter than a caller waits.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Until a connection whose other side is silent is given up.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Until a server that says nothing is given up, whatever it was asked. Beyond every time-out of its own.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(15);

/// Until a caller that finds every connection in use is told to come again.
const POOL_PATIENCE: Duration = Duration::from_secs(2);

/// While a database is brought up to date, others that want to do so wait.
const MIGRATION_LOCK: i64 = i64::from_be_bytes(*b"csignmig");

/// What a session needs that says nothing for long and holds a lock: whoever is gone without a word must not keep it. The
/// server's own defaults are hours; on a socket of its machine these do nothing.
pub(super) const WATCHED: &str = "
    SET tcp_keepalives_idle = 10;
    SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3;
";

/// A lock that is not had in that time is held by someone who is stuck: others need not wait with those who want it.
pub(super) const LOCK_WAIT: Duration = Duration::from_millis(500);

/// What every session needs, besides how long it waits for a lock. A gateway
/// that stops in the middle of a transaction must not hold its locks for ever. Plans are made once, must
/// not depend on how small a table was then, and so use indexes and nothing else. And what is committed
/// is on the disk, whatever the server's default.
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

/// How the database is reached: where it is, and how it is spoken to.
#[derive(Clone)]
pub(super) struct PostgresAddress {
    config: Config,
    tls: MakeRustlsConnect,
}

/// What carries a connection's messages. Whoever has it has to drive it.
pub(super) type PostgresConnection = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

impl PostgresAddress {
    /// Reads the address. Its text may hold a password, and is never repeated.
    ///
    /// Beyond this machine the other side has to show a certificate, of its own name, that this machine's authorities or
    /// that one vouch for, before it is told anything; unless the address says that nobody else is on the way.
    pub(super) fn read(url: &str, authority: Option<&[u8]>) -> Result<Self, OpenError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(OpenError::Url("it must begin with postgres://".to_owned()));
        }
        let mut config: Config = url.parse().map_err(|error: Error| OpenError::Url(unread(url, &error)))?;
        config.ssl_mode(mode_of(&config));
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("countersign");
        }
        config.tcp_user_timeout(SILENCE_MAX);
        config.keepalives_idle(SILENCE_MAX);
        if authority.is_some() && config.get_ssl_mode() == SslMode::Disable {
            let unused = "`database_ca_file` vouches for a certificate that is not asked for: say sslmode=require, or take it out";
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

/// Whether it is spoken to by TLS.
fn mode_of(config: &Config) -> SslMode {
    match (config.get_ssl_mode(), stays_here(config)) {
        (SslMode::Disable | SslMode::Prefer, true) => SslMode::Disable,
        (SslMode::Disable, false) => {
            tracing::warn!("the database is spoken to in the clear, beyond this machine: its address says so");
            SslMode::Disable
        }
        _ => SslMode::Require,
    }
}

fn unread(url: &str, error: &Error) -> String {
    if url.contains("sslmode=verify-") {
        return "say sslmode=require: it checks certificate and name as verify-full does".to_owned();
    }
    // What is called an option may be a piece of a password that is not written as it has to be.
    match error.source().map(ToString::to_string).unwrap_or_default() {
        said if said.starts_with("invalid value for option") => said,
        _ => {
            "it is not an address of PostgreSQL's, or has an option that is not known; write signs in a password as %40"
                .to_owned()
        }
    }
}

/// Whether nothing that is said crosses a network.
fn stays_here(config: &Config) -> bool {
    let here = |it: &Host| match it {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|it| it.is_loopback()),
    };
    match config.get_hostaddrs() {
        [] => config.get_hosts().iter().all(here),
        addresses => addresses.iter().all(IpAddr::is_loopback),
    }
}

pub(super) fn pool(address: &PostgresAddress, lock_wait: Duration) -> Result<Pool, StoreError> {
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

/// A connection taken from the pool. Unless it is given back it is closed: whoever was interrupted in the
/// middle of something, or met an error, leaves nobody else a transaction half done.
pub(super) struct PooledConnection(Option<Object>);

impl PooledConnection {
    /// Takes a connection that is free, or a new one.
    pub(super) async fn take(pool: &Pool) -> Result<Self, StoreError> {
        let taken = pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => database(&error),
            PoolError::Timeout(TimeoutType::Wait) => StoreError::Busy,
            PoolError::Timeout(_) => silent(),
            PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(HookError::Message(_)) => {
                StoreError::unavailable(Outage::Down, "PostgreSQL: no connections are given out")
            }
        });
        taken.map(|it| Self(Some(it)))
    }

    /// Done with it, and nothing is left undone.
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
            drop(Object::take(object));
        }
    }
}

/// What is said of a server that accepts and does not answer.
pub(super) fn silent() -> StoreError {
    StoreError::unavailable(Outage::Down, "PostgreSQL: it does not answer")
}

/// Makes the first connection, so that a wrong address shows at once.
pub(super) async fn warm(pool: Pool) -> Result<(), StoreError> {
    PooledConnection::take(&pool).await.map(PooledConnection::give_back)
}

/// Refuses a database that is not up to date, and changes nothing.
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

/// Brings the database up to date, one gateway at a time.
pub(super) async fn migrate(address: PostgresAddress) -> Result<(), OpenError> {
    let (mut client, connection) = address.connect().await.map_err(|error| database(&error))?;
    tokio::spawn(connection);
    check_encoding(&client).await?;
    let failed = |error: Error| OpenError::Store(database(&error));
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

/// The order of bytes is the order of texts only in UTF-8, and only UTF-8 holds every text.
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
    fn what_crosses_a_network_is_encrypted_unless_the_address_says_otherwise() {
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
