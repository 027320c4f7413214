//! Python with the packages that tests need, in the environment that `./test` makes for the oracle: made when it is not
//! there yet.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// An interpreter that has exactly what `tests/oracle/requirements.txt` names.
pub fn python() -> PathBuf {
    with("oracle")
}

/// An interpreter that has exactly what the requirements in that folder of `tests/` name, and what those need.
pub fn with(folder: &str) -> PathBuf {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| ours.join("target"), PathBuf::from);
    let (wanted, home) = (ours.join("tests").join(folder).join("requirements.txt"), target.join(folder));
    fs::create_dir_all(&target).unwrap();
    let lock = fs::File::create(target.join(format!("{folder}.lock"))).unwrap();
    // Several test binaries may want it at once.
    lock.lock().unwrap();
    let installed = home.join("requirements.txt");
    if fs::read(&installed).ok() != Some(fs::read(&wanted).unwrap()) {
        let _ = fs::remove_dir_all(&home);
        let made = Command::new("python3").args(["-m", "venv"]).arg(&home).status();
        assert!(made.expect("python3 is installed by ./test").success(), "python3 -m venv failed");
        let pip = ["install", "--quiet", "--disable-pip-version-check", "-r"];
        let done = Command::new(home.join("bin/pip")).args(pip).arg(&wanted).status();
        assert!(done.unwrap().success(), "pip install failed");
        fs::copy(&wanted, &installed).unwrap();
    }
    home.join("bin/python")
}

/// Returns the output of a script of `tests/oracle/` for a text.
pub fn answered(script: &str, text: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(script);
    let mut child = Command::new(python()).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the script failed");
    String::from_utf8(output.stdout).unwrap()
}
