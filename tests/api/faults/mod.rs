//! Tests faults of the machine: a database that is down, read-only or full, removed files, damaged pages, and a second
//! gateway on one data directory. The gateway is the real program, in its own process.

mod audits;
mod files;
mod outages;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use countersign_adapters::clock::{Clock as _, SystemClock};
use serde_json::Value;

use crate::program::{ChildProcess, PROGRAM};

pub const POLICY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/payments/policy.toml");

/// The promise about readiness, in both directions.
pub const WITHIN: Duration = Duration::from_secs(2);

/// Longer than a slow machine takes to start or to stop a gateway.
pub const PATIENCE: Duration = Duration::from_secs(60);

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A running gateway, and its standard error.
pub struct FaultyGateway {
    pub process: ChildProcess,
    pub url: String,
    stderr: PathBuf,
}

impl FaultyGateway {
    /// Starts a gateway, with more of an environment.
    pub fn start(data: &Path, environment: &[(&str, &str)]) -> Self {
        let stderr = data.with_extension("stderr");
        let mut command = serve(data);
        command.envs(environment.iter().copied());
        command
            .stdout(Stdio::piped())
            .stderr(std::fs::File::options().create(true).append(true).open(&stderr).unwrap());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{}", read(&stderr)));
        Self { process: ChildProcess(process), url: said["listening"].as_str().unwrap().to_owned(), stderr }
    }

    pub fn log(&self) -> String {
        read(&self.stderr)
    }

    /// The exit code, once the gateway has ended by itself.
    pub fn ended(&mut self) -> i32 {
        let begun = SystemClock.instant();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status.code().unwrap();
            }
            assert!(begun.elapsed() < PATIENCE, "the gateway runs on: {}", self.log());
            std::thread::yield_now();
        }
    }
}

pub fn serve(data: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("--data").arg(data).args(["serve", "--json", "--listen", "127.0.0.1:0"]);
    command
}

/// A library for `LD_PRELOAD` by which a disk fails.
pub fn faulty() -> String {
    static BUILT: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("faulty.c");
        std::fs::write(&source, include_str!("faulty.c")).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
        compiler.arg(folder.path().join("faulty.so")).arg(source).arg("-ldl");
        assert!(compiler.status().expect("a C compiler is installed: `./test` sees to it").success());
        folder
    });
    BUILT.path().join("faulty.so").to_str().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    let mut text = String::new();
    std::fs::File::open(path).unwrap().read_to_string(&mut text).unwrap();
    text
}
