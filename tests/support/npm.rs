//! Packages of npm that tests need: installed below the target directory when they are not there yet.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The modules of a folder in `tests/`, exactly those of its committed lock file.
pub fn modules(folder: &str) -> PathBuf {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| ours.join("target"), PathBuf::from);
    let (named, home) = (ours.join("tests").join(folder), target.join(folder));
    fs::create_dir_all(&home).unwrap();
    let lock = fs::File::create(home.join("lock")).unwrap();
    // Several test binaries may want it at once.
    lock.lock().unwrap();
    let wanted = fs::read(named.join("package-lock.json")).unwrap();
    if fs::read(home.join("installed.json")).ok().as_ref() != Some(&wanted) {
        for name in ["package.json", "package-lock.json"] {
            fs::copy(named.join(name), home.join(name)).unwrap();
        }
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
        let done = Command::new("npm").args(arguments).current_dir(&home).status();
        assert!(done.expect("npm is installed by ./test").success(), "npm ci failed");
        fs::write(home.join("installed.json"), &wanted).unwrap();
    }
    home.join("node_modules")
}
