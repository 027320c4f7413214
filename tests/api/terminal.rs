//! Runs commands in a terminal: what they ask a person, and what they show of the answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::program::{ChildProcess, PROGRAM};

/// Runs the arguments in a pseudo-terminal, and passes its own input and output on.
const IN_TERMINAL: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/// A command in a terminal, and its output so far.
struct TerminalProcess {
    child: ChildProcess,
    keys: ChildStdin,
    screen: ChildStdout,
    shown: String,
}

impl TerminalProcess {
    fn start(args: &[&str], folder: &Path) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", IN_TERMINAL, PROGRAM])
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keys, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child: ChildProcess(child), keys, screen, shown: String::new() }
    }

    /// Reads until the output after the last answer contains this text.
    fn until(&mut self, wanted: &str) {
        let (mut byte, mut line) = ([0_u8; 1], Vec::new());
        while !String::from_utf8_lossy(&line).contains(wanted) {
            assert_eq!(self.screen.read(&mut byte).unwrap(), 1, "no {wanted:?} in:\n{}", self.shown);
            line.push(byte[0]);
            self.shown.push(char::from(byte[0]));
            assert!(!self.shown.ends_with("No fresh proposal"), "{}", self.shown);
        }
    }

    fn answer(&mut self, question: &str, answer: &str) {
        self.until(question);
        self.keys.write_all(format!("{answer}\n").as_bytes()).unwrap();
    }
}

const PASSWORD: &str = "correct horse battery staple";

#[test]
fn init_asks_for_everything_and_shows_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let mut init = TerminalProcess::start(&["init"], folder.path());
    init.answer("Name of the flow: ", "files");
    init.answer("no server: ", "notes");
    init.answer("every tool): ", "write_file");
    init.answer("approves: ", "ada");
    init.answer("or more: ", "short");
    init.until("The password is too short.");
    init.answer("or more: ", PASSWORD);
    init.answer("again: ", "correct horse battery stable");
    init.until("The two passwords differ.");
    init.answer("or more: ", PASSWORD);
    init.answer("again: ", PASSWORD);
    init.until("Created the account ada in the group approvers.");
    assert!(init.shown.contains("write_file"), "other answers are shown: {}", init.shown);
    assert!(!init.shown.contains("horse") && !init.shown.contains("short\r"), "{}", init.shown);
    init.until("\"--\",\"COMMAND\",\"ARGUMENTS\"");
    assert!(init.child.0.wait().unwrap().success());
    let policy = std::fs::read_to_string(folder.path().join("files.toml")).unwrap();
    assert!(policy.contains("tools = [\"notes:write_file\"]"), "{policy}");
}

#[test]
fn enter_makes_a_fresh_proposal_in_the_demo() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = TerminalProcess::start(&["demo", "--listen", "127.0.0.1:0"], folder.path());
    demo.answer("Press Enter for a fresh proposal", "");
    demo.until("wants to change the thread order-101");
    demo.until("as ada: http://localhost:");
    demo.answer("/reviews/", "");
    demo.until("tools/call issue_refund {\"amount\":40,\"customer\":\"C-17\",\"order\":\"B-102\"}");
}

/// Runs `init` and then the gateway in a folder. Returns the printed lines and the running gateway.
fn set_up(folder: &Path, subject: &[&str]) -> (Value, ChildProcess) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let countersign = |args: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(args).current_dir(folder).env("COUNTERSIGN_LISTEN", &free).stdout(Stdio::piped());
        command
    };
    let args = ["init", "work", "--approver", "ada", "--password-stdin", "--json"];
    let mut init = countersign(&[&args, subject].concat()).stdin(Stdio::piped()).spawn().unwrap();
    init.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).unwrap();
    let told = init.wait_with_output().unwrap();
    assert!(told.status.success());
    let mut gateway = countersign(&["serve"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(gateway.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(&free.replace("127.0.0.1", "localhost")), "{line}");
    (serde_json::from_slice::<Value>(&told.stdout).unwrap()["paste"].clone(), ChildProcess(gateway))
}

/// Runs the printed line of Python between these lines, with the variables of `.env`.
fn pasted(folder: &Path, before: &str, paste: &Value, after: &str) -> String {
    let script = format!("import os\n{before}\n{}\n{after}", paste["python"].as_str().unwrap());
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/src");
    let ran = Command::new("sh")
        .args(["-c", "set -a; . ./.env; exec \"$0\" -c \"$1\""])
        .arg(crate::python::with("aap"))
        .arg(&script)
        .env("PYTHONPATH", ours)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{script}\n{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

#[test]
fn python_line_of_init_asks_for_approval_of_a_tool_call() {
    let folder = tempfile::tempdir().unwrap();
    let (paste, _gateway) = set_up(folder.path(), &["--ask", "write_file"]);
    let after = "for tool in ('write_file', 'read_file'):\n    \
        print(client.create({'tool': tool, 'arguments': {}, 'timeout': '10m'}, tool).status)";
    assert_eq!(pasted(folder.path(), "import agentapprovalprotocol", &paste, after), "pending\napproved");
}

#[test]
fn python_line_of_init_proposes_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let (paste, _gateway) = set_up(folder.path(), &["--keys", "refund"]);
    let after = "made = countersign.Client(os.environ['GATE'], os.environ['HOST']).create_thread('work', {}, thread='t')\n\
        print(type(agent.propose('t', node='agent', parent=made.transition, patch={'refund': 4})).__name__)";
    assert_eq!(pasted(folder.path(), "import countersign", &paste, after), "Held");
}
