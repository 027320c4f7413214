//! Runs the quick start of the README: the demonstration, the walkthrough and the README's own snippets.

mod readme;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use countersign_web::pages::shared::nav::SCREENS;
use serde_json::{Value, json};

use crate::program::{ChildProcess, PROGRAM};

#[test]
fn the_walkthrough_ends_with_the_row_written_once() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/walkthrough.sh");
    let ran = Command::new("bash").arg(script).arg(PROGRAM).env("LISTEN", "127.0.0.1:0").output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(said.lines().next_back(), Some("write-1 42 40"), "{said}");
}

/// A running demonstration and its output so far.
struct DemoProcess {
    child: ChildProcess,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    said: Vec<String>,
}

impl DemoProcess {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(more: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["demo", "--listen", "127.0.0.1:0"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child: ChildProcess(child), lines, said: Vec::new() }
    }

    /// Returns the processor time of the process, in whole seconds.
    fn processor_seconds(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.0.id())).unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        let ticks = after_name.split_whitespace().skip(11).take(2).map(|it| it.parse::<u64>().unwrap()).sum::<u64>();
        ticks / rustix::param::clock_ticks_per_second()
    }

    /// Reads until a line contains this text.
    fn until(&mut self, wanted: &str) -> String {
        loop {
            let line =
                self.lines.next().unwrap_or_else(|| panic!("no {wanted:?} in:\n{}", self.said.join("\n"))).unwrap();
            self.said.push(line.clone());
            if line.contains(wanted) {
                return line;
            }
        }
    }
}

/// Opens a link of the demo. Returns the one-time link of the gateway that it leads to.
async fn one_time_link(link: &str) -> String {
    countersign_adapters::tls::ready();
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer = http.get(link).send().await.unwrap();
    assert_eq!(answer.status(), 303, "{link}");
    answer.headers()["location"].to_str().unwrap().to_owned()
}

fn url_in(line: &str) -> String {
    line[line.find("http://").unwrap()..].trim().to_owned()
}

/// Returns the value of the page's first field with this name.
fn field(page: &str, name: &str) -> String {
    let at = format!("name=\"{name}\" value=\"");
    let start = page.find(&at).unwrap_or_else(|| panic!("no field {name} in {page}")) + at.len();
    page[start..].split('"').next().unwrap().to_owned()
}

/// A browser without scripts: one session, forms sent from the page's own origin.
struct ScriptlessBrowser {
    http: reqwest::Client,
    origin: String,
    cookies: Vec<String>,
}

impl ScriptlessBrowser {
    fn new(url: &str) -> Self {
        let origin = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        countersign_adapters::tls::ready();
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        let http = http.pool_max_idle_per_host(0).build().unwrap();
        Self { http, origin, cookies: Vec::new() }
    }

    async fn send(&mut self, request: reqwest::RequestBuilder) -> (u16, String) {
        let response = request.header("cookie", self.cookies.join("; ")).send().await.unwrap();
        let set = response.headers().get_all("set-cookie").iter();
        let new: Vec<String> = set.map(|it| it.to_str().unwrap().split(';').next().unwrap().to_owned()).collect();
        let name = |cookie: &str| cookie.split('=').next().unwrap_or_default().to_owned();
        self.cookies.retain(|it| !new.iter().any(|other| name(other) == name(it)));
        self.cookies.extend(new);
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn get(&mut self, url: &str) -> String {
        self.send(self.http.get(url)).await.1
    }

    async fn post(&mut self, url: &str, fields: &[(&str, String)]) -> (u16, String) {
        let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        let form = self.http.post(url).header("origin", &self.origin);
        let form = form.header("content-type", "application/x-www-form-urlencoded").body(pairs.join("&"));
        self.send(form).await
    }

    /// Signs in by a link of the demo. Returns the browser and the address that the link opens then.
    async fn signed_in_by(link: &str) -> (Self, String) {
        let once = one_time_link(link).await;
        let mut browser = Self::new(&once);
        let page = browser.get(&once).await;
        let fields = ["csrf", "next"].map(|it| (it, field(&page, it)));
        let action = once.split('?').next().unwrap();
        let (status, answer) = browser.post(action, &fields).await;
        assert_eq!(status, 303, "{answer}");
        let next = format!("{}{}", browser.origin, fields[1].1);
        (browser, next)
    }

    /// Sends the form of a review, and then the confirmation page.
    async fn approve(&mut self, review: &str) {
        let mut page = self.get(review).await;
        for confirmed in ["", "yes"] {
            let mut fields: Vec<(&str, String)> = ["csrf", "digest", "nonce", "stage", "browser_check"]
                .iter()
                .map(|it| (*it, field(&page, it)))
                .collect();
            fields.extend([
                ("verdict", "approve".to_owned()),
                ("comment", String::new()),
                ("confirmed", confirmed.to_owned()),
            ]);
            let (status, answer) = self.post(&format!("{review}/decision"), &fields).await;
            if status == 303 {
                return;
            }
            page = answer;
        }
        panic!("the vote was not counted: {page}");
    }
}

fn escaped(value: &str) -> String {
    value
        .bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[test]
fn the_demonstration_writes_once_and_its_lines_to_copy_succeed() {
    let mut demo = DemoProcess::start();
    demo.until("http://localhost:");
    // An optimized build on a free processor starts within two seconds. The limit here also allows for a debug build.
    assert!(demo.processor_seconds() < 10);
    demo.until("wants to change the thread order-17");
    let link = url_in(&demo.until("as ada: "));
    assert!(demo.until("as ben: ").contains("/reviews/"), "each person who can decide it has a link");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (mut browser, review) = ScriptlessBrowser::signed_in_by(&link).await;
        browser.approve(&review).await;
        // The link works again, and each visit has its own one-time link of the gateway.
        assert_ne!(one_time_link(&link).await, one_time_link(&link).await);
        let forged = link.replace("/ada/", "/ben/");
        assert_eq!(browser.send(browser.http.get(&forged)).await.0, 404, "the secret belongs to one person");
    });
    demo.until("The row is written");
    for code in ["403 already_used", "403 version_mismatch", "403 signature_invalid"] {
        demo.until(code);
        assert!(demo.until("write_id=write-1").contains("target_user_id=42"), "beside each denial, the unchanged row");
    }
    demo.until("Copy these lines");
    for command in ["verify", "audit"] {
        let line = demo.until(&format!(" {command} "));
        let mut words = line.split_whitespace();
        let ran = Command::new(words.next().unwrap()).args(words).output().unwrap();
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stdout));
    }
    let rejected = demo.said.iter().filter(|it| it.contains("/is_admin")).count();
    assert!(rejected > 0, "the injected key was rejected by name");
    assert!(!demo.said.iter().any(|it| it.contains("\"patch\"")), "bodies are printed with --verbose only");
    assert!(!demo.said.iter().any(|it| it.contains("Press Enter")), "standard input is no terminal");
    let interrupt = Command::new("kill").args(["-INT", &demo.child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    demo.until("Stopped.");
    assert!(demo.child.wait().unwrap().success(), "ctrl-c is an orderly end");
}

#[test]
fn the_demonstration_runs_a_tool_call_after_its_approval() {
    let mut demo = DemoProcess::start();
    let configuration = demo.until("{\"mcpServers\"");
    let configuration: Value = serde_json::from_str(configuration.trim()).unwrap();
    let server = &configuration["mcpServers"]["desk"];
    demo.until("wants to call desk:issue_refund");
    let link = url_in(&demo.until("as ada: "));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (mut browser, review) = ScriptlessBrowser::signed_in_by(&link).await;
        let page = browser.get(&review).await;
        for words in ["Refund a payment", "Customer number", "EUR", "high risk"] {
            assert!(page.contains(words), "{words} in {page}");
        }
        browser.approve(&review).await;
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let post = browser.http.post(server["url"].as_str().unwrap()).json(&list);
        assert_eq!(browser.send(post.try_clone().unwrap()).await.0, 401, "the server needs a token");
        let token = server["headers"]["Authorization"].as_str().unwrap();
        let (status, listed) = browser.send(post.header("authorization", token)).await;
        assert!(status == 200 && listed.contains("look_up_order") && listed.contains("issue_refund"), "{listed}");
    });
    assert!(demo.until("The agent got").contains("Refunded 40 EUR for order B-77. It is refund number 1."));
}

#[test]
fn left_alone_the_second_review_visibly_expires_and_nothing_is_written() {
    let mut demo = DemoProcess::start_with(&["--deadline", "20s"]);
    demo.until("Without their decision, it expires");
    demo.until("200 expired");
    demo.until("The second review EXPIRED");
    assert!(!demo.said.iter().any(|it| it.contains("The row is written")));
}

/// The list of passkeys is empty for every account, even in the demonstration: a passkey is a person's own device.
const ONES_OWN: &str = "/account/passkeys";

#[test]
fn no_screen_of_the_demonstration_is_empty() {
    let mut demo = DemoProcess::start();
    let admin = url_in(&demo.until("gus (administrator): "));
    demo.until("a third flow with sample history");
    demo.until("Two people are needed");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (mut browser, _) = ScriptlessBrowser::signed_in_by(&admin).await;
        let origin = browser.origin.clone();
        let screens = SCREENS.iter().map(|it| it.address).filter(|it| *it != ONES_OWN);
        for path in screens.chain(["/insight?span=1h", "/threads/refund-101", "/?show=past"]) {
            let mut page = browser.get(&format!("{origin}{path}")).await;
            // Workers write and count the log a second later.
            while path.starts_with("/insight") && page.contains("class=\"empty") {
                page = browser.get(&format!("{origin}{path}")).await;
            }
            assert!(page.contains("<h1"), "{path}: {page}");
            assert!(!page.contains("class=\"empty"), "{path}: {page}");
        }
        let past = browser.get(&format!("{origin}/?show=past")).await;
        for ended in ["Approved", "Denied", "Cancelled", "Superseded"] {
            assert!(past.contains(ended), "{ended}: {past}");
        }
        let people = browser.get(&format!("{origin}/people")).await;
        assert!(people.contains("emil") && people.contains("cleo"), "{people}");
    });
}

#[test]
fn a_taken_port_is_named_with_its_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in ["serve", "demo"] {
        let folder = tempfile::tempdir().unwrap();
        let ran =
            Command::new(PROGRAM).env("COUNTERSIGN_DATA", folder.path()).args([command, "--listen", &address]).output();
        let ran = ran.unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{said}");
        assert!(said.contains(&address) && said.contains("--listen"), "{said}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
    }
}
