//! Connections to PostgreSQL by TLS, which remote servers require.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::sync::{Arc, LazyLock};

use countersign_store::postgres::{OpenError, PostgresOptions, PostgresStore};
use countersign_store::row::Table;
use countersign_store::{LeaderTask, ScanPage, Store};

use crate::database::{insert, row};
use crate::server::{binaries, connect, unprivileged};

const CERTIFICATE: &str = include_str!("../provider/tls/certificate.pem");
const KEY: &str = include_str!("../provider/tls/key.pem");
const AUTHORITY: &[u8] = include_bytes!("../provider/tls/authority.pem");

/// Starts a server like that of the other tests, with a certificate for `localhost` and also a TCP port.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
umask 077
folder=$(mktemp -d /tmp/countersign-pg-XXXXXX) && chmod 711 "$folder" || exit 1
trap '"$0/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1; rm -rf "$folder"' EXIT
"$0/initdb" -D "$folder/data" -U countersign -A trust -E UTF8 --locale=C --no-sync >"$folder/log" 2>&1 &&
printf %s "$CERTIFICATE" >"$folder/data/server.crt" && printf %s "$KEY" >"$folder/data/server.key" &&
"$0/pg_ctl" -D "$folder/data" -w -t 60 -l "$folder/log" -o "-c listen_addresses=localhost -c port=$1 -c ssl=on \
    -c unix_socket_directories=$folder -c fsync=off" start >/dev/null || { cat "$folder/log" >&2; exit 1; }
echo "$folder"
cat >/dev/null
"#;

struct TlsServer {
    port: u16,
    socket: String,
    /// Its open input keeps the server up.
    _keeper: Child,
}

static SERVER: LazyLock<TlsServer> = LazyLock::new(|| {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = unprivileged();
    command.args(["sh", "-c", SCRIPT]).arg(binaries()).arg(port.to_string());
    command.env("CERTIFICATE", CERTIFICATE).env("KEY", KEY);
    command.current_dir("/").process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut keeper = command.spawn().unwrap();
    let mut socket = String::new();
    BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut socket).unwrap();
    assert!(!socket.is_empty(), "PostgreSQL did not start");
    TlsServer { port, socket: socket.trim_end().replace('/', "%2F"), _keeper: keeper }
});

impl TlsServer {
    /// The address of a new database there, by that name of the server's.
    async fn address(&self, host: &str, name: &str, mode: &str) -> String {
        let beside = self.beside("postgres").await;
        beside.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        format!("postgres://countersign@{host}:{}/{name}?sslmode={mode}", self.port)
    }

    /// Connects by the Unix socket, as an administrator of the server does.
    async fn beside(&self, name: &str) -> tokio_postgres::Client {
        connect(&format!("postgres://countersign@{}:{}/{name}", self.socket, self.port)).await
    }

    /// The sessions of gateways in that database: how many are encrypted, and how many are not.
    async fn sessions(&self, name: &str) -> (i64, i64) {
        let counted = "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl) FROM pg_stat_ssl \
                       JOIN pg_stat_activity USING (pid) WHERE application_name = 'countersign' AND datname = $1";
        let row = self.beside(name).await.query_one(counted, &[&name]).await.unwrap();
        (row.get(0), row.get(1))
    }
}

async fn open(address: &str, authority: Option<&[u8]>) -> Result<PostgresStore, OpenError> {
    let authority = authority.map(<[u8]>::to_vec);
    PostgresStore::open(address, PostgresOptions { authority, ..PostgresOptions::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_connection_is_encrypted() {
    let address = SERVER.address("localhost", "every", "require").await;
    let store = Arc::new(open(&address, Some(AUTHORITY)).await.unwrap());
    let kept = row("row");
    store.commit(insert(&[&kept])).await.unwrap();
    assert_eq!(store.get(Table::Threads, "row").await.unwrap().as_ref(), Some(&kept));
    let duty = store.take(LeaderTask::Sequencing).await.unwrap();
    assert!(duty.is_some());
    let mut met = 0;
    store.walk(&mut |page| met += usize::from(matches!(page, ScanPage::Rows(_)))).await.unwrap();
    assert!(met > 0);
    let (encrypted, clear) = SERVER.sessions("every").await;
    // The store has connections for commits, reads, notifications and the leader lock.
    assert!(encrypted >= 3 && clear == 0, "{encrypted} encrypted, {clear} in the clear");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_nobody_vouches_for_is_told_nothing() {
    let address = SERVER.address("localhost", "nobody", "require").await;
    let refused = open(&address, None).await.err().unwrap().to_string();
    assert!(refused.contains("certificate") && refused.contains("database_ca_file"), "{refused}");
    assert_eq!(SERVER.sessions("nobody").await, (0, 0));
    let clear = SERVER.address("localhost", "vouched", "disable").await;
    let refused = open(&clear, Some(AUTHORITY)).await.err().unwrap().to_string();
    assert!(refused.contains("database_ca_file"), "who would be vouched for is not asked: {refused}");
    for none in [&b""[..], b"no certificate", KEY.as_bytes()] {
        let refused = open(&address, Some(none)).await.err().unwrap().to_string();
        assert!(refused.contains("PEM"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_another_name_is_told_nothing() {
    let address = SERVER.address("127.0.0.1", "another", "require").await;
    let refused = open(&address, Some(AUTHORITY)).await.err().unwrap().to_string();
    assert!(refused.contains("certificate"), "{refused}");
    assert_eq!(SERVER.sessions("another").await, (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_speaks_no_tls_is_told_nothing() {
    let clear = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("postgres://countersign@localhost:{}/x?sslmode=require", clear.local_addr().unwrap().port());
    // A server that was built without TLS answers `N`.
    let server = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = clear.accept().unwrap();
        let mut asked = [0; 8];
        stream.read_exact(&mut asked).unwrap();
        stream.write_all(b"N").unwrap();
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        said
    });
    let refused = open(&address, Some(AUTHORITY)).await.err().unwrap().to_string();
    assert!(refused.contains("does not support TLS"), "{refused}");
    assert_eq!(server.join().unwrap(), b"", "nothing was said in the clear");
}
