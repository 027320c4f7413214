//! Runs the commands of the quickstart and the README's example in one shell, in order, beside a gateway that the first
//! command starts. The test replaces only locations: the program, its folder and its port.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::{PROGRAM, ScriptlessBrowser, field, url_in};

const README: &str = include_str!("../../../README.md");
const QUICKSTART: &str = include_str!("../../../docs/quickstart.md");
const PASSWORD: &str = "correct horse battery staple";

/// The bash blocks of a page, in order.
fn snippets(page: &str) -> Vec<String> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced.filter_map(|it| it.strip_prefix("bash\n")).map(str::to_owned).collect()
}

/// A running program and its output so far. It ends with the test.
struct ReadmeProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    said: Vec<String>,
}

impl ReadmeProcess {
    fn start(folder: &Path, script: &str, stderr: Stdio) -> Self {
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", script]).current_dir(folder);
        bash.env("COUNTERSIGN_DATA", folder.join("data")).env("COUNTERSIGN_LISTEN", "127.0.0.1:0");
        bash.env("COUNTERSIGN_LOG_LEVEL", "trace");
        let mut child = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { stdin: child.stdin.take(), child, lines, said: Vec::new() }
    }

    fn types(&mut self, text: &str) {
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let line = self.lines.next().unwrap_or_else(|| panic!("it ended after:\n{}", self.said.join("\n"))).unwrap();
        self.said.push(line.clone());
        line
    }

    fn until(&mut self, wanted: &str) -> String {
        loop {
            let line = self.line();
            if line.contains(wanted) {
                return line;
            }
        }
    }

    /// Types a snippet in, and gives the lines that it prints; an answer of curl has no end of its line.
    fn says_to(&mut self, snippet: &str) -> Vec<String> {
        self.types(&format!("{snippet}\nprintf '\\n== done\\n'\n"));
        let mut printed = Vec::new();
        loop {
            match self.line() {
                line if line == "== done" => return printed,
                line if line.is_empty() => {}
                line => printed.push(line),
            }
        }
    }
}

impl Drop for ReadmeProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates the first account as the quickstart says, by the link that `serve` prints.
async fn set_up(link: &str) -> ScriptlessBrowser {
    let mut browser = ScriptlessBrowser::new(link);
    let csrf = field(&browser.get(link).await, "csrf");
    let fields = [("username", "ada"), ("password", PASSWORD), ("groups", "finance"), ("role", "reviewer")];
    let mut fields: Vec<(&str, String)> = fields.map(|(name, value)| (name, value.to_owned())).into();
    fields.push(("csrf", csrf));
    let (status, page) = browser.post(link, &fields).await;
    assert_eq!(status, 303, "{page}");
    browser
}

#[test]
fn quickstart_leads_to_a_verified_write() {
    let folder = tempfile::tempdir().unwrap();
    let house = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::os::unix::fs::symlink(house.join("examples"), folder.path().join("examples")).unwrap();
    let programs = Path::new(PROGRAM).parent().unwrap().display().to_string();
    let examples = snippets(README);
    let [sample] = &examples[..] else { panic!("the README has one example in bash") };
    let snippets = snippets(QUICKSTART);
    let [start, policy, host, agent, wait, writer, check, walkthrough] = &snippets[..] else {
        panic!("the quickstart has other commands: {snippets:#?}")
    };
    assert_eq!(walkthrough, "examples/walkthrough.sh\n", "another test runs it");
    let here = |snippet: &str| snippet.replace("$PWD/target/debug", &programs);

    let start = here(start).replace("cargo build\n", "").replace("countersign serve", "exec countersign serve");
    let log = folder.path().join("log");
    let mut gateway = ReadmeProcess::start(folder.path(), &start, File::create(&log).unwrap().into());
    let url = url_in(&gateway.until("Countersign listens at"));
    let link = url_in(&gateway.until("/set-up/"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut ada = runtime.block_on(set_up(&link));

    let mut shell = ReadmeProcess::start(folder.path(), "exec bash -euo pipefail", Stdio::inherit());
    shell.says_to(&here(policy));
    shell.says_to(&host.replace("http://localhost:8480", &url));
    // The README's example, with the response that it shows. It is cancelled, so that the thread is free for the quickstart.
    let (request, promised) = sample.split_once("# 202 ").unwrap();
    let held = shell.says_to(&request.replace("http://localhost:8480", &url)).join("");
    let held: serde_json::Value = serde_json::from_str(&held).unwrap();
    assert!(promised.contains("\"outcome\":\"held\"") && held["outcome"] == "held", "{held}");
    assert!(promised.contains("/reviews/") && held["review"]["url"].as_str().unwrap().contains("/reviews/"), "{held}");
    let digest = held["transition"].as_str().unwrap();
    shell.says_to(&format!("call $AGENT $gate/v1/transitions/{digest}/cancellation -d '{{\"reason\":\"a sample\"}}'"));

    let said = shell.says_to(agent);
    assert_eq!(said[0], "\"held\"", "{said:?}");
    let review = url_in(said.last().unwrap()).trim_matches('"').to_owned();
    shell.types(&format!("{wait}\necho \"receipt $RECEIPT\"\n"));
    runtime.block_on(ada.approve(&review));
    assert_eq!(shell.until("receipt ").matches('.').count(), 2, "the agent waited for it");
    let said = shell.says_to(writer).join("\n");
    assert!(said.starts_with("true") && said.contains("\"target_user_id\": 42") && said.contains("\n1\n"), "{said}");
    assert!(said.contains("\"outcome\":\"confirmed\""), "{said}");

    assert!(QUICKSTART.contains("another `write_id`, the gateway returns 403 `not_head`"));
    let again = writer.lines().take(2).collect::<Vec<_>>().join("\n").replace("write-1", "write-2");
    let again = again.replace(".allow, .view, .fence", ".status, .code");
    assert_eq!(shell.says_to(&again), ["403", "\"not_head\""]);
    let said = shell.says_to(&check.replace("http://localhost:8480", &url)).join("\n");
    assert!(said.contains("genuine receipt; what it approves was not checked"), "{said}");

    let ask = "printf '%s\\n' $HOST $AGENT $WRITER | cut -d_ -f3-; echo ${RECEIPT##*.}; echo ${RECEIPT%.*}";
    let secrets = shell.says_to(ask);
    assert_eq!(secrets.iter().filter(|it| it.len() >= 43).count(), 5, "{secrets:?}");
    drop(shell.stdin.take());
    assert!(shell.child.wait().unwrap().success());
    tells_no_secret(&log, secrets.iter().chain(&[link.rsplit('/').next().unwrap().to_owned()]).chain(&ada.cookies));
}

/// All that a gateway logged, at its most talkative.
fn tells_no_secret<'a>(log: &Path, secrets: impl Iterator<Item = &'a String>) {
    let log = std::fs::read_to_string(log).unwrap();
    for told in ["route=\"/set-up/{secret}\"", "route=\"/v1/verify\"", "status=403"] {
        assert!(log.contains(told), "{told} in {log}");
    }
    for secret in secrets.map(String::as_str).chain([PASSWORD, "Please refund"]) {
        let value = secret.rsplit('=').next().unwrap();
        assert!(!log.contains(value), "{value} in {log}");
    }
}
