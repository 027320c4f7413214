//! A PostgreSQL of one test, which the test stops and starts again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use crate::postgres::{binaries, unprivileged};

/// Says where the socket is, and then does what it is asked, a line each, until the end of its input.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
folder=$(mktemp -d /tmp/countersign-own-XXXXXX) && chmod 711 "$folder" || exit 1
trap '"$0/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1; rm -rf "$folder"' EXIT
start() {
    "$0/pg_ctl" -D "$folder/data" -w -t 60 -l "$folder/log" \
        -o "-c listen_addresses= -c unix_socket_directories=$folder -c fsync=off" start >/dev/null 2>&1
}
"$0/initdb" -D "$folder/data" -U countersign -A trust -E UTF8 --locale=C --no-sync >"$folder/log" 2>&1 && start ||
    { cat "$folder/log" >&2; exit 1; }
echo "$folder"
while read -r order; do
    case $order in
        start) start ;;
        stop) "$0/pg_ctl" -D "$folder/data" -w -t 60 -m fast stop >/dev/null 2>&1 ;;
        *) PGOPTIONS='-c default_transaction_read_only=off -c client_min_messages=error' "$0/psql" -q -h "$folder" -U countersign -d postgres -c "$order" >/dev/null ;;
    esac
    echo "$?"
done
"#;

pub struct OwnCluster {
    folder: String,
    orders: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    /// Its open input keeps the cluster up.
    _keeper: Child,
}

impl OwnCluster {
    pub fn start() -> Self {
        let mut command: Command = unprivileged();
        command.args(["sh", "-c", SCRIPT]).arg(binaries());
        command.current_dir("/").process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().unwrap();
        let mut said = BufReader::new(keeper.stdout.take().unwrap());
        let mut folder = String::new();
        said.read_line(&mut folder).unwrap();
        assert!(folder.starts_with("/tmp/"), "PostgreSQL did not start");
        let orders = Mutex::new((keeper.stdin.take().unwrap(), said));
        Self { folder: folder.trim_end().to_owned(), orders, _keeper: keeper }
    }

    pub fn url(&self) -> String {
        format!("postgres://countersign@{}/postgres", self.folder.replace('/', "%2F"))
    }

    pub fn stop(&self) {
        self.order("stop");
    }

    pub fn start_again(&self) {
        self.order("start");
    }

    /// Runs a statement as the superuser.
    pub fn run(&self, sql: &str) {
        self.order(sql);
    }

    fn order(&self, order: &str) {
        let (asks, told) = &mut *self.orders.lock().unwrap();
        writeln!(asks, "{order}").unwrap();
        let mut status = String::new();
        told.read_line(&mut status).unwrap();
        assert_eq!(status.trim_end(), "0", "{order}");
    }
}
