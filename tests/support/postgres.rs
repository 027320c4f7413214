//! A throw-away PostgreSQL for the tests of one process: made when first asked for, gone when the process is.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_postgres::Client;

/// Prints the path of the socket, and then waits for the end of its input. The input ends when the test process ends
/// in any way. Signals to the process group are ignored.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
folder=$(mktemp -d /tmp/countersign-pg-XXXXXX) && chmod 711 "$folder" || exit 1
trap '"$0/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1; rm -rf "$folder"' EXIT
"$0/initdb" -D "$folder/data" -U countersign -A trust -E UTF8 --locale=C --no-sync >"$folder/log" 2>&1 &&
"$0/pg_ctl" -D "$folder/data" -w -t 60 -l "$folder/log" -o "-c listen_addresses= -c unix_socket_directories=$folder \
    -c max_connections=400 -c shared_buffers=64MB $1" start >/dev/null || { cat "$folder/log" >&2; exit 1; }
echo "$folder"
cat >/dev/null
"#;

/// Tests do not cut PostgreSQL's power, so they need not wait for the disk. No database lives until it needs a vacuum.
/// Optimised builds measure, and wait as in production.
const SETTINGS: &str = if cfg!(debug_assertions) { "-c fsync=off -c autovacuum=off" } else { "-c fsync=on" };

struct PostgresCluster {
    socket: String,
    /// Its open input keeps the cluster up.
    _keeper: Child,
}

static CLUSTER: LazyLock<PostgresCluster> = LazyLock::new(start);

/// The address of a new, empty database. Fails, and does not skip, where PostgreSQL is not installed.
pub async fn new_database() -> String {
    let (client, name) = (connect(&url("postgres")).await, new_name());
    copy_database(&client, "template1", &name).await.unwrap();
    url(&name)
}

/// Makes a database as a copy of the files of another. From version 15 on, PostgreSQL writes each page to its log
/// instead if nothing else is set, which takes five times as long.
pub async fn copy_database(client: &Client, from: &str, to: &str) -> Result<(), tokio_postgres::Error> {
    let has_strategies = "SELECT current_setting('server_version_num')::int >= 150000";
    let copies: bool = client.query_one(has_strategies, &[]).await?.get(0);
    let strategy = if copies { " STRATEGY FILE_COPY" } else { "" };
    client.batch_execute(&format!("CREATE DATABASE {to} TEMPLATE {from}{strategy}")).await
}

/// Returns a database name that is unique in this process.
pub fn new_name() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Opens a plain connection, outside of the gateway.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The address of the database of that name.
pub fn url(database: &str) -> String {
    format!("postgres://countersign@{}/{database}", CLUSTER.socket.replace('/', "%2F"))
}

fn start() -> PostgresCluster {
    let mut command = unprivileged();
    command.args(["sh", "-c", SCRIPT]).arg(binaries()).arg(SETTINGS);
    command.current_dir("/").process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut keeper = command.spawn().unwrap();
    let mut socket = String::new();
    BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut socket).unwrap();
    if socket.is_empty() {
        let mut reason = String::new();
        keeper.stderr.take().unwrap().read_to_string(&mut reason).unwrap();
        assert!(reason.is_empty() && !socket.is_empty(), "PostgreSQL did not start: {reason}");
    }
    PostgresCluster { socket: socket.trim_end().to_owned(), _keeper: keeper }
}

/// PostgreSQL refuses to run as root.
pub fn unprivileged() -> Command {
    let root = Command::new("id").arg("-u").output().is_ok_and(|it| it.stdout.trim_ascii() == b"0");
    if !root {
        return Command::new("env");
    }
    let exists = |user: &&str| Command::new("id").arg(user).output().is_ok_and(|it| it.status.success());
    let user = ["postgres", "nobody"].into_iter().find(exists).expect("a user other than root");
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={user}")).arg(format!("--regid={}", group(user))).arg("--clear-groups");
    command
}

fn group(user: &str) -> String {
    let output = Command::new("id").args(["-g", user]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the folder of initdb: Debian's newest version, or else the one on the path.
pub fn binaries() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let installed = versions.map(|it| it.path().join("bin")).filter(|it| it.join("initdb").exists());
    let version = |bin: &PathBuf| bin.parent().and_then(Path::file_name)?.to_str()?.parse::<u32>().ok();
    let on_path = || std::env::split_paths(&std::env::var_os("PATH")?).find(|it| it.join("initdb").exists());
    installed.max_by_key(version).or_else(on_path).expect(
        "PostgreSQL is not installed: no initdb in /usr/lib/postgresql/*/bin or on the PATH. \
         `./test` installs it (Debian: apt-get install postgresql)",
    )
}
