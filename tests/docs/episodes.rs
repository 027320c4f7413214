//! Runs the commands of `docs/specs/episodes.md` against a real gateway. The exported folder verifies, and so does the
//! folder of the demo.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::PROGRAM;

/// Prerequisites of the page: the quickstart's flow and tokens, and a function for API calls.
const BEFORE: &str = r#"
set -euo pipefail
gate=$GATE
call() { curl -sS -H "Authorization: Bearer $1" -H 'Content-Type: application/json' "${@:2}"; }
countersign policy activate "$HOUSE/examples/payments/policy.toml" > /dev/null
HOST=$(countersign token add order-app --role host --owner platform --new-group --flow payments)
AGENT=$(countersign token add planner --role agent --owner platform --new-group --flow payments --node planner)
"#;

/// A program of ours that is ended with the test.
struct DocsProcess {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl DocsProcess {
    fn begin(arguments: &[&str], folder: &Path) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).env("COUNTERSIGN_DATA", folder.join("data")).env("TMPDIR", folder);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Returns the rest of the first line that contains these words.
    fn says(&mut self, words: &str) -> String {
        for line in self.lines.by_ref().map_while(Result::ok) {
            if let Some((_, rest)) = line.split_once(words) {
                return rest.to_owned();
            }
        }
        panic!("it never said {words:?}")
    }
}

impl Drop for DocsProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The commands of a part of the page.
fn commands(part: &str) -> String {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/specs/episodes.md")).unwrap();
    let part = page.split(part).nth(1).unwrap().split("\n## ").next().unwrap();
    part.split("```bash\n").skip(1).map(|it| it.split("```").next().unwrap()).collect()
}

#[test]
fn commands_of_the_page_leave_the_files_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut gateway = DocsProcess::begin(&["serve", "--listen", "127.0.0.1:0"], folder.path());
    let url = gateway.says("Countersign listens at ");
    let programs = Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
    let script = format!("{BEFORE}{}", commands("\n## An episode through the gateway\n"));
    let done = Command::new("bash")
        .args(["-c", &script])
        .env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()))
        .env("COUNTERSIGN_DATA", folder.path().join("data"))
        .env("HOUSE", env!("CARGO_MANIFEST_DIR"))
        .env("GATE", &url)
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("\"left\":997"), "three events were added: {said}");
    assert!(said.contains("\"ok\"\n"), "{said}");
    assert!(said.ends_with("verified: these are the run's files, and they belong together\n"), "{said}");
}

#[test]
fn the_demonstration_leaves_a_run_that_verifies() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = DocsProcess::begin(&["demo", "--listen", "127.0.0.1:0"], folder.path());
    let run = demo.says("episode verify ");
    let verified = Command::new(PROGRAM).args(["episode", "verify", &run]).output().unwrap();
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
    let state = std::fs::read_to_string(Path::new(&run).join("state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert_eq!(state["outcomes"]["status"], "ok");
    assert_eq!(state["outcomes"]["x-gateway"]["write.confirmed"], 1);
}
