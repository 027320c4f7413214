//! The program as a command, and child processes that end with their test.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_countersign");

/// Child process that is killed when its owner drops it, even if the test fails.
pub struct ChildProcess(pub Child);

impl Deref for ChildProcess {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for ChildProcess {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the output of a command on that data folder, and checks that the command succeeds.
pub fn told(data: &Path, arguments: &[&str]) -> String {
    let done = Command::new(PROGRAM).arg("--data").arg(data).args(arguments).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}
