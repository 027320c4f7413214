use std::ffi::OsString;
use std::path::Path;

use countersign_adapters::clock::SystemClock;
use countersign_adapters::keyring::Keyring;
use countersign_store::sqlite::{SqliteOptions, SqliteStore};
use serde_json::Value;

use super::*;

fn line(data: &Path, line: &str) -> (CommandExit, String, String) {
    let words = line.split_whitespace().map(OsString::from);
    let line = [OsString::from("countersign"), "--data".into(), data.into()].into_iter().chain(words);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = run(&Args::read(line).unwrap(), &mut out, &mut err);
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn gateway(data: &Path) -> Keyring {
    Keyring::open_or_create(&data.join("keyring.json"), None, &SystemClock).unwrap()
}

fn with_database(data: &Path) {
    gateway(data);
    SqliteStore::open(data.join("countersign.db"), SqliteOptions::default()).unwrap();
    let (exit, _, err) = line(data, "token list");
    assert_eq!(exit, CommandExit::Yes, "{err}");
}

fn listed(data: &Path) -> Vec<Value> {
    let (exit, out, _) = line(data, "keys list --json");
    assert_eq!(exit, CommandExit::Yes);
    serde_json::from_str::<Value>(&out).unwrap()["keys"].as_array().unwrap().clone()
}

#[test]
fn rotation_applies_to_a_running_gateway() {
    let data = tempfile::tempdir().unwrap();
    let gateway = gateway(data.path());
    let (exit, out, _) = line(data.path(), "keys rotate");
    assert_eq!(exit, CommandExit::Yes);
    let signing = gateway.current().unwrap().signing(countersign_domain::keys::KeyUse::Chain).kid().to_owned();
    assert_eq!(out, format!("{signing}\n"));
    assert_eq!(listed(data.path()).len(), 7);
}

#[test]
fn revocation_applies_to_a_running_gateway() {
    use countersign_domain::keys::{KeyState, KeyUse};
    let data = tempfile::tempdir().unwrap();
    let gateway = gateway(data.path());
    let kid = gateway.current().unwrap().signing(KeyUse::Webhook).kid().to_owned();
    let (exit, out, _) = line(data.path(), &format!("keys revoke {kid} --json"));
    assert_eq!(exit, CommandExit::Yes);
    let keys = gateway.current().unwrap();
    assert_eq!(keys.public(KeyUse::Webhook, &kid).unwrap().state(), KeyState::Revoked);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&answer["use"], &answer["signing"]), (&"webhook".into(), &keys.signing(KeyUse::Webhook).kid().into()));
}

#[test]
fn keys_rotate_once_although_the_event_cannot_be_written() {
    let data = tempfile::tempdir().unwrap();
    let gateway = gateway(data.path());
    std::fs::write(data.path().join("countersign.db"), "no database").unwrap();
    let (exit, out, err) = line(data.path(), "keys rotate");
    let signing = gateway.current().unwrap().signing(countersign_domain::keys::KeyUse::Chain).kid().to_owned();
    assert_eq!((exit, out), (CommandExit::Yes, format!("{signing}\n")));
    assert!(err.contains("the keyring was changed, so do not repeat the command"), "{err}");
    let (exit, _, err) = line(data.path(), &format!("keys revoke {signing}"));
    assert_eq!(exit, CommandExit::Yes);
    assert!(err.contains("The audit log has no event of this change"), "{err}");
    assert!(gateway.current().unwrap().signing(countersign_domain::keys::KeyUse::Chain).kid() != signing);
}

#[test]
fn a_list_names_every_key_and_nothing_private() {
    let data = tempfile::tempdir().unwrap();
    gateway(data.path());
    let (_, out, err) = line(data.path(), "keys list");
    assert_eq!((out.lines().count(), err.as_str()), (7, ""));
    let file: Value = serde_json::from_slice(&std::fs::read(data.path().join("keyring.json")).unwrap()).unwrap();
    for key in file["keys"].as_array().unwrap() {
        assert!(out.contains(key["kid"].as_str().unwrap()));
        assert!(!out.contains(key["private"].as_str().unwrap()));
    }
    let states: Vec<_> = listed(data.path()).iter().map(|it| it["status"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states, ["signing", "next", "signing", "next", "signing", "next"]);
}

#[test]
fn unknown_key_exits_with_1() {
    let data = tempfile::tempdir().unwrap();
    gateway(data.path());
    let (exit, out, err) = line(data.path(), "keys revoke nobody");
    assert_eq!((exit, out.as_str()), (CommandExit::No, ""));
    assert!(err.contains("there is no key nobody") && !err.contains("cannot be used"), "{err}");
}

#[test]
fn another_keyring_is_reported() {
    let data = tempfile::tempdir().unwrap();
    with_database(data.path());
    std::fs::remove_file(data.path().join("keyring.json")).unwrap();
    Keyring::open_or_create(&data.path().join("keyring.json"), None, &SystemClock).unwrap();
    let (exit, out, err) = line(data.path(), "token list");
    assert_eq!((exit, out.as_str()), (CommandExit::CouldNotTell, ""));
    assert!(err.contains("created with another keyring"), "{err}");
}

#[test]
fn lost_keyring_is_not_replaced() {
    let data = tempfile::tempdir().unwrap();
    with_database(data.path());
    let keyring = data.path().join("keyring.json");
    let kept = std::fs::read(&keyring).unwrap();
    std::fs::remove_file(&keyring).unwrap();
    let (exit, out, err) = line(data.path(), "token list");
    assert_eq!((exit, out.as_str()), (CommandExit::CouldNotTell, ""));
    assert!(err.contains("restore it"), "{err}");
    assert!(!keyring.exists(), "another one would be in the way");
    std::fs::write(&keyring, kept).unwrap();
    std::fs::set_permissions(&keyring, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(line(data.path(), "token list").0, CommandExit::Yes);
}

#[test]
#[cfg(unix)]
fn a_database_that_was_put_back_open_to_others_is_closed_to_them() {
    use std::os::unix::fs::PermissionsExt as _;
    let data = tempfile::tempdir().unwrap();
    with_database(data.path());
    let file = data.path().join("countersign.db");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(line(data.path(), "token list").0, CommandExit::Yes);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn damaged_receipt_is_not_read_as_a_file_name() {
    for given in ["eyJhbGciOiJFZERTQSJ9.e30.c2ln", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJFZERTQSJ9.e3"] {
        let data = tempfile::tempdir().unwrap();
        let keys = data.path().join("jwks.json");
        std::fs::write(&keys, "{\"keys\":[]}").unwrap();
        let (exit, out, err) = line(data.path(), &format!("verify {given} --jwks {}", keys.display()));
        assert_eq!(exit, CommandExit::No, "{given}: {out} {err}");
        assert!(out.contains("receipt_malformed"), "{given}: {out}");
    }
}

#[test]
fn command_without_a_keyring_exits_with_2_and_creates_none() {
    let data = tempfile::tempdir().unwrap();
    let (exit, out, err) = line(data.path(), "keys list");
    assert_eq!((exit, out.as_str()), (CommandExit::CouldNotTell, ""));
    assert!(err.contains("keyring.json") && err.contains("countersign serve"), "{err}");
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
}

const SUPPOSED: &str = r#"
flow = "payments"
protected = ["target_user_id"]

[nodes.planner]
reads = ["target_user_id", "note", "card"]
writes = ["target_user_id", "note", "card"]

[approval]
[[approval.stages]]
groups = ["reviewers"]

[redaction]
hide = ["card"]
"#;

/// Runs `policy what-if` on a patch of `planner`.
fn supposed(patch: &str, rest: &str) -> (CommandExit, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (policy, patch) = (file("policy.toml", SUPPOSED), file("patch.json", patch));
    let state = file("state.json", r#"{"target_user_id": 17, "note": "a", "card": "4111-1111"}"#);
    line(folder.path(), &format!("policy what-if {policy} --state {state} --patch {patch} --node planner {rest}"))
}

#[test]
fn what_if_needs_no_gateway() {
    let (exit, out, _) = supposed(r#"{"note": "b"}"#, "");
    assert_eq!((exit, out.as_str()), (CommandExit::Yes, "commit\n  \"/note\": \"a\" → \"b\"\n"));
    let (exit, out, _) = supposed(r#"{"target_user_id": 42, "card": "5555-5555"}"#, "");
    assert_eq!(exit, CommandExit::No);
    assert!(out.starts_with("hold\n") && out.contains("\"/target_user_id\": 17 → 42"), "{out}");
    assert!(
        out.contains("\"/card\": a redacted value") && !out.contains("5555-5555") && !out.contains("4111-1111"),
        "{out}"
    );
    let (exit, out, _) =
        supposed(r#"[{"op": "add", "path": "/is_admin", "value": true}]"#, "--format json-patch --json");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((exit, &told["outcome"]), (CommandExit::No, &"reject".into()));
    assert_eq!(
        (&told["errors"][0]["code"], &told["errors"][0]["pointer"]),
        (&"write_not_allowed".into(), &"/is_admin".into())
    );
    assert_eq!(supposed("[]", "").1, "reject\n  patch_failed at \"\": not a patch of the given format\n");
}

#[test]
fn unreadable_input_exits_with_2() {
    let (exit, out, err) = supposed(r#"{"note": 1, "note": 2}"#, "");
    assert_eq!((exit, out.as_str()), (CommandExit::CouldNotTell, ""));
    assert!(err.contains("patch.json: two keys of one object are equal"), "{err}");
    let folder = tempfile::tempdir().unwrap();
    let (exit, _, err) = line(folder.path(), "policy what-if /nowhere/p.toml --state s --patch p --node planner");
    assert!(exit == CommandExit::CouldNotTell && err.contains("cannot read /nowhere/p.toml"), "{err}");
}

#[test]
fn agent_text_cannot_control_a_terminal() {
    let (_, out, _) = supposed("{\"note\": \"\u{202e}\\u001b[2Jpaid\"}", "");
    assert!(out.chars().all(|it| it == '\n' || it == '→' || it.is_ascii_graphic() || it == ' '), "{out:?}");
    assert!(out.contains("\\u202e") && out.contains("\\u001b"), "{out}");
}

#[test]
fn what_if_accepts_a_principal_and_committed_nodes() {
    let (exit, out, _) = supposed(r#"{"note": "b"}"#, "--principal one --owner team --committed-nodes a,b");
    assert_eq!((exit, out.lines().next()), (CommandExit::Yes, Some("commit")));
    let folder = tempfile::tempdir().unwrap();
    let ask = "policy what-if p --state s --patch q --node n";
    for half in ["--principal one", "--owner team", "--committed-nodes a,,b"] {
        let words = format!("countersign {ask} {half}");
        assert!(Args::read(words.split_whitespace().map(OsString::from)).is_err(), "{half}");
    }
    let (exit, _, err) = line(folder.path(), &format!("{ask} --principal \u{7} --owner team"));
    assert_eq!(exit, CommandExit::CouldNotTell, "{err}");
}

/// Runs `policy test`.
fn tested(policy: &str, cases: &str, rest: &str) -> (CommandExit, String, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("policy.toml"), policy).unwrap();
    std::fs::write(folder.path().join("cases.jsonl"), cases).unwrap();
    let path = folder.path().display();
    let (exit, out, err) = line(folder.path(), &format!("policy test {path}/policy.toml {path}/cases.jsonl {rest}"));
    (exit, out.replace(&format!("{path}/"), ""), err.replace(&format!("{path}/"), ""))
}

const GOOD: &str = r#"{"name": "a note", "state": {}, "node": "planner", "patch": {"note": 1}, "expect": "commit"}
{"name": "a user", "state": {}, "node": "planner", "patch": {"target_user_id": 1}, "expect": "hold", "codes": ["protected"]}
"#;

#[test]
fn failed_cases_are_listed_one_per_line() {
    let (exit, out, _) = tested(SUPPOSED, GOOD, "");
    assert_eq!((exit, out.as_str()), (CommandExit::Yes, "2 passed, 0 failed\n"));
    let bad = r#"{"name": "an \u202eadmin", "state": {}, "node": "planner", "patch": {"is_admin": 1}, "expect": "reject", "codes": ["schema"]}"#;
    let (exit, out, _) = tested(SUPPOSED, &format!("{GOOD}{bad}"), "");
    let told = concat!(
        "FAILED \"an \\u202eadmin\": expected reject codes [\"schema\"], got reject codes [\"write_not_allowed\"]: ",
        "write_not_allowed at \"/is_admin\": the node may not write this: its `writes` do not cover it\n2 passed, 1 failed\n",
    );
    assert_eq!((exit, out.as_str()), (CommandExit::No, told));
    let (exit, out, _) = tested(SUPPOSED, &format!("{GOOD}{bad}"), "--json");
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((exit, &answer["passed"], &answer["failed"]), (CommandExit::No, &2.into(), &1.into()));
    let failure = &answer["failures"][0];
    assert_eq!((&failure["line"], &failure["got"]["outcome"]), (&3.into(), &"reject".into()));
}

#[test]
fn invalid_policy_or_cases_exit_with_2() {
    for (policy, cases, says) in [
        (SUPPOSED, "", "cases.jsonl: the file has no case"),
        (SUPPOSED, "{}", "cases.jsonl:1: a case needs `name`"),
        (SUPPOSED, &format!("{GOOD}{}", GOOD.replace("\"node\"", "\"as\"")), "cases.jsonl:3: "),
        ("flow = 1", GOOD, "policy.toml: "),
    ] {
        let (exit, out, err) = tested(policy, cases, "");
        assert_eq!(exit, CommandExit::CouldNotTell);
        assert!(format!("{out}{err}").contains(says), "{out}{err}");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.toml"), SUPPOSED).unwrap();
    let path = folder.path().display();
    let (exit, _, err) = line(folder.path(), &format!("policy test {path}/p.toml {path}/nowhere.jsonl"));
    assert!(exit == CommandExit::CouldNotTell && err.contains("cannot read"), "{err}");
}

#[test]
fn replay_creates_no_database() {
    let data = tempfile::tempdir().unwrap();
    let policy = data.path().join("p.toml");
    std::fs::write(&policy, SUPPOSED).unwrap();
    let (exit, out, err) = line(data.path(), &format!("policy replay {}", policy.display()));
    assert!((exit, out.as_str()) == (CommandExit::CouldNotTell, "") && err.contains("there is no database"), "{err}");
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 1);
}

/// Writes a policy with its schema, and returns its path.
fn refunds(data: &Path, protected: &str) -> String {
    let schema = r#"{"additionalProperties": false, "properties": {"refund": {}, "note": {}}}"#;
    std::fs::write(data.join("s.json"), schema).unwrap();
    let policy = format!(
        "flow = \"refunds\"\nschema = \"s.json\"\nprotected = [\"{protected}\"]\n[nodes.agent]\nreads = [\"nte\"]\n\
         [[approval.stages]]\ngroups = [\"finance\"]\n"
    );
    let file = data.join("refunds.toml");
    std::fs::write(&file, policy).unwrap();
    file.display().to_string()
}

#[test]
fn misspelled_protected_path_fails_the_check() {
    let data = tempfile::tempdir().unwrap();
    let (exit, out, _) = line(data.path(), &format!("policy check {}", refunds(data.path(), "refnd")));
    assert_eq!(exit, CommandExit::No);
    assert!(out.contains("the nearest is `refund` [never_matches]"), "{out}");
    let (exit, out, err) = line(data.path(), &format!("policy check {} --json", refunds(data.path(), "refund")));
    assert_eq!(exit, CommandExit::Yes, "{out}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&told["sound"], &told["warnings"][0]["code"]), (&true.into(), &"never_matches".into()));
    assert!(err.contains("line 5, column 10: `nodes.agent.reads[0]`") && err.contains("`note`"), "{err}");
}

#[test]
fn activation_and_new_token_report_what_the_flow_lacks() {
    let data = tempfile::tempdir().unwrap();
    with_database(data.path());
    let (exit, out, err) = line(data.path(), &format!("policy activate {}", refunds(data.path(), "refund")));
    assert_eq!(exit, CommandExit::Yes, "{err}");
    assert!(out.ends_with("\nflow: refunds\nnodes: agent\nstage 1: 1 of finance\n"), "{out}");
    for code in ["[never_matches]", "[stage_cannot_be_met]", "[node_without_token]"] {
        assert!(err.contains(code), "{code}: {err}");
    }
    let add = "token add bot --role agent --owner platform --new-group --flow refunds --node";
    let (exit, out, err) = line(data.path(), &format!("{add} agnet --json"));
    assert_eq!(exit, CommandExit::Yes, "{err}");
    assert!(err.contains("The policy has the node agent") && err.contains("[unknown_node]"), "{err}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["findings"].as_array().unwrap().len(), 3, "{told}");
    let (_, _, err) = line(data.path(), &format!("{add} agent"));
    assert!(err.contains("[stage_cannot_be_met]") && !err.contains("[node_without_token]"), "{err}");
    let (_, _, err) =
        line(data.path(), "token add bot --role agent --owner platform --new-group --flow other --node n");
    assert!(err.contains("[flow_without_policy]"), "{err}");
}

fn initialized(data: &Path, rest: &str) -> (CommandExit, String, String) {
    initialized_by(data, rest, "correct horse battery staple\n")
}

fn initialized_by(data: &Path, rest: &str, stdin: &str) -> (CommandExit, String, String) {
    let words = format!("init {rest} --folder {}", data.display());
    let line = [OsString::from("countersign"), "--data".into(), data.join("data").into()]
        .into_iter()
        .chain(words.split_whitespace().map(OsString::from));
    let args = Args::read(line).unwrap();
    let Command::Init(init) = &args.command else { panic!() };
    let config = Config::load(&args.flags(), Vec::new()).unwrap();
    let (mut out, mut lines) = (Vec::new(), stdin.as_bytes());
    let form = if args.global.json { OutputFormat::Json } else { OutputFormat::Text };
    let mut output = CommandOutput::new(form, &mut out);
    let mut from = AnswerSource { lines: &mut lines, typed: AnswerInput::File };
    let done = init::run(init, &config, &mut from, &mut output);
    let mut said = output.warnings().join("\n");
    let exit = done.unwrap_or_else(|error| {
        said.push_str(&causes(&error));
        error.exit()
    });
    (exit, String::from_utf8(out).unwrap(), said)
}

const FILES: &str = "files --server files --ask write_file,edit_file --approver ada --password-stdin";

#[test]
fn init_sets_up_a_flow_that_lacks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (exit, out, err) = initialized(folder.path(), &format!("{FILES} --json"));
    assert_eq!((exit, err.as_str()), (CommandExit::Yes, ""));
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&told["findings"], &told["account_created"]), (&serde_json::json!([]), &true.into()));
    let mcp: Value = serde_json::from_str(told["paste"]["mcp"].as_str().unwrap()).unwrap();
    let args = mcp["mcpServers"]["files"]["args"].as_array().unwrap();
    assert!(args[1].as_str().unwrap().contains("countersign mcp guard") && args[4] == "files", "{mcp}");
    assert!(!out.contains("cs_"), "a token is only in `.env`");
    let policy = std::fs::read_to_string(folder.path().join("files.toml")).unwrap();
    assert!(policy.contains("allow = [\"files:*\"]") && policy.contains("\"files:edit_file\""), "{policy}");
    let (exit, out, err) =
        line(&folder.path().join("data"), &format!("policy check {}/files.toml", folder.path().display()));
    assert_eq!((exit, err.as_str()), (CommandExit::Yes, ""), "{out}");
    let env = folder.path().join(".env");
    assert!(std::fs::read_to_string(&env).unwrap().contains("\nINSTANCE=cs_"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&env).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn init_overwrites_nothing_and_leaves_nothing_after_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let env = folder.path().join(".env");
    std::fs::write(&env, "SECRET=1\n").unwrap();
    let (exit, _, err) = initialized(folder.path(), FILES);
    assert_eq!(exit, CommandExit::CouldNotTell);
    assert!(err.contains(".env exists already"), "{err}");
    assert_eq!(std::fs::read_to_string(&env).unwrap(), "SECRET=1\n");
    assert!(!folder.path().join("files.toml").exists() && !folder.path().join("data").exists());
    std::fs::remove_file(&env).unwrap();
    let (exit, _, err) = initialized(folder.path(), "files --ask x --approver ada");
    assert!(exit == CommandExit::CouldNotTell && err.contains("--password-stdin"), "{err}");
    assert!(!env.exists() && !folder.path().join("files.toml").exists() && !folder.path().join("data").exists());
    let (exit, _, err) = initialized_by(folder.path(), FILES, "short\n");
    assert!(exit == CommandExit::No && err.contains("12"), "{err}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the database was removed again");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("own.txt"), "").unwrap();
    assert_eq!(initialized_by(folder.path(), FILES, "short\n").0, CommandExit::No);
    let left: Vec<_> = std::fs::read_dir(&data).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["own.txt"], "a file that was there before stays");
    assert_eq!(initialized(folder.path(), FILES).0, CommandExit::Yes);
    let (exit, _, err) = initialized(folder.path(), &FILES.replace("init files", "init other"));
    assert_eq!(exit, CommandExit::CouldNotTell, "{err}");
    assert!(data.join("countersign.db").exists(), "an existing database stays");
}

#[test]
fn init_asks_for_what_no_flag_names() {
    let folder = tempfile::tempdir().unwrap();
    let answers = "files\nnotes\nwrite_file, edit_file\nada\ncorrect horse battery staple\n";
    let (exit, out, err) = initialized_by(folder.path(), "--password-stdin", answers);
    assert_eq!((exit, err.as_str()), (CommandExit::Yes, ""), "{out}");
    let policy = std::fs::read_to_string(folder.path().join("files.toml")).unwrap();
    assert!(policy.contains("\"notes:write_file\", \"notes:edit_file\""), "{policy}");
    let other = tempfile::tempdir().unwrap();
    let (exit, _, err) =
        initialized_by(other.path(), "--password-stdin", "files\n\nrefund\nada\ncorrect horse battery staple\n");
    assert_eq!((exit, err.as_str()), (CommandExit::Yes, ""));
    let policy = std::fs::read_to_string(other.path().join("files.toml")).unwrap();
    assert!(policy.contains("tools = [\"refund\"]"), "the tools are of no server: {policy}");
}

#[test]
fn command_in_a_folder_without_a_database_names_the_path_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let (exit, _, err) = line(folder.path(), "doctor");
    assert_eq!(exit, CommandExit::CouldNotTell);
    let path = folder.path().join("countersign.db").display().to_string();
    for words in [path.as_str(), "change to the folder", "countersign init", "--data"] {
        assert!(err.contains(words), "{words} in {err}");
    }
}

#[test]
fn init_protects_the_keys_of_a_state() {
    let folder = tempfile::tempdir().unwrap();
    let (exit, _, err) =
        initialized(folder.path(), "refunds --keys refund,payment.amount --approver ada --password-stdin");
    assert_eq!((exit, err.as_str()), (CommandExit::Yes, ""));
    let env = std::fs::read_to_string(folder.path().join(".env")).unwrap();
    assert!(env.contains("\nHOST=cs_") && env.contains("\nAGENT=cs_"));
    let (_, out, _) = line(&folder.path().join("data"), "policy show refunds");
    assert!(out.contains("protected = [\"refund\", \"payment.amount\"]"), "{out}");
}

#[test]
fn accounts_are_listed_and_their_access_is_set() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(initialized(folder.path(), FILES).0, CommandExit::Yes);
    let data = folder.path().join("data");
    assert_eq!(line(&data, "user list").1, "ada enabled reviewer approvers\n");
    let (exit, out, _) = line(&data, "user set-groups ada finance,security");
    assert_eq!((exit, out.as_str()), (CommandExit::Yes, "ada is reviewer in finance,security\n"));
    let (exit, out, err) = line(&data, "doctor");
    assert_eq!(exit, CommandExit::No, "{err}");
    assert!(out.starts_with("problem: In the flow files, stage 1 needs 1 reviewer of approvers"), "{out}");
    assert_eq!(line(&data, "user set-groups ada approvers").0, CommandExit::Yes);
    let (exit, out, _) = line(&data, "doctor --json");
    let told: Value = serde_json::from_str(&out).unwrap();
    let codes: Vec<_> = told["findings"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect();
    assert!(exit == CommandExit::Yes && codes.iter().all(|it| *it == "not_serving"), "{codes:?}");
    assert_eq!(line(&data, "user set-role ada auditor").1, "ada is auditor in approvers\n");
    assert_eq!(line(&data, "user set-role nobody auditor").0, CommandExit::No);
    let (_, out, _) = line(&data, "policy list");
    assert!(out.starts_with("files sha256:"), "{out}");
    assert_eq!(line(&data, "policy show other").0, CommandExit::No);
}
