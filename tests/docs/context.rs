//! `docs/guides/parallel-agents.md`: its commands are typed into one terminal beside a real gateway, and say what it says.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{PROGRAM, blocks};

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/parallel-agents.md")).unwrap()
}

struct DocsGateway {
    child: Child,
    url: String,
}

impl DocsGateway {
    fn begin(folder: &Path) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("COUNTERSIGN_DATA", folder.join("data"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.find_map(|it| it.strip_prefix("Countersign listens at ").map(str::to_owned));
        let url = said.unwrap_or_else(|| panic!("the gateway did not begin"));
        // The later output is not used, but it has to be read so that the gateway does not block.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }
}

/// Kills the gateway at the end of a test, even if the test fails.
impl Drop for DocsGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn page_shows_the_output_of_its_commands() {
    let (folder, page) = (tempfile::tempdir().unwrap(), page());
    let gateway = DocsGateway::begin(folder.path());
    let mut script = "set -euo pipefail\n".to_owned();
    let mut expected = String::new();
    for (fence, text) in blocks(&page) {
        match fence.split_once(' ') {
            Some((_, name)) => std::fs::write(folder.path().join(name), text).unwrap(),
            None if fence == "bash" => script.push_str(text),
            None => expected.push_str(text),
        }
    }
    let programs = Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
    let done = Command::new("bash")
        .args(["-c", &script])
        .env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()))
        .env("COUNTERSIGN_DATA", folder.path().join("data"))
        .env("GATE", &gateway.url)
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success());
    assert!(expected.lines().count() > 10, "the page has something to say");
}
