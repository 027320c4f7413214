//! Runs the quick start of the README: the demonstration, the walkthrough and the README's own snippets.

mod readme;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use countersign_web::pages::shared::nav::SCREENS;

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
        let mut child = Command::new(PROGRAM)
            .args(["demo", "--listen", "127.0.0.1:0"])
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

    async fn sign_in(&mut self, link: &str) {
        let csrf = field(&self.get(link).await, "csrf");
        let (status, page) = self.post(link, &[("csrf", csrf)]).await;
        assert_eq!(status, 303, "{page}");
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
    let ada = url_in(&demo.until("ada (finance)"));
    let review = url_in(&demo.until("One person is needed"));
    demo.until("Two people are needed");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut browser = ScriptlessBrowser::new(&ada);
        browser.sign_in(&ada).await;
        browser.approve(&review).await;
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
    let interrupt = Command::new("kill").args(["-INT", &demo.child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    demo.until("Stopped.");
    assert!(demo.child.wait().unwrap().success(), "ctrl-c is an orderly end");
}

#[test]
fn left_alone_the_second_review_visibly_expires_and_nothing_is_written() {
    let mut demo = DemoProcess::start();
    demo.until("left alone, it expires");
    // The review expires after its flow's time limit, which the page counts down.
    demo.until("200 expired");
    demo.until("The second review EXPIRED");
    assert!(!demo.said.iter().any(|it| it.contains("is decided") || it.contains("The row is written")));
}

/// The list of passkeys is empty for every account, even in the demonstration: a passkey is a person's own device.
const ONES_OWN: &str = "/account/passkeys";

#[test]
fn no_screen_of_the_demonstration_is_empty() {
    let mut demo = DemoProcess::start();
    let admin = url_in(&demo.until("gus: "));
    demo.until("a third flow with sample history");
    demo.until("Two people are needed");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut browser = ScriptlessBrowser::new(&admin);
        browser.sign_in(&admin).await;
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
