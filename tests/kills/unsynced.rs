//! Copies each database file at its last sync, which is the content that survives a power failure.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

const SOURCE: &str = include_str!("unsynced.c");

/// A library for `LD_PRELOAD` that copies a database file to `SYNCED_COPIES` whenever it has been synced.
pub fn library() -> PathBuf {
    static BUILT: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("unsynced.c");
        std::fs::write(&source, SOURCE).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]);
        compiler.arg(folder.path().join("unsynced.so")).arg(source).args(["-ldl", "-lpthread"]);
        let built = compiler.status().expect("a C compiler is installed: `./test` sees to it");
        assert!(built.success());
        folder
    });
    BUILT.path().join("unsynced.so")
}
