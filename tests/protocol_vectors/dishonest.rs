//! Exports with valid signatures from a dishonest gateway, from an attacker who has its key, or from an attacker who
//! assembled the files.

use countersign_domain::keys::Keys;

use countersign_adapters::archives::packed;

use super::*;

/// A gateway's key with which anything may be signed.
struct ForgingKeys(Keys);

impl ForgingKeys {
    fn new() -> Self {
        let mut next = 0_u8;
        let mut random = |bytes: &mut [u8]| {
            next += 1;
            bytes.fill(next);
        };
        Self(Keys::generate("https://countersign.example", Timestamp::from_millis(0), &mut random).unwrap())
    }

    fn keys(&self) -> Value {
        self.0.trusted().jwks()
    }

    /// The versions with their entries signed by this key, as `change` makes them.
    fn signed(&self, items: &Value, change: impl Fn(u64, &mut Entry)) -> Value {
        let mut items = items.clone();
        for item in items.as_array_mut().unwrap() {
            let mut entry =
                jws::read::<Entry>(text(item, "entry"), TokenType::Entry).unwrap().claims_unverified().clone();
            change(entry.version, &mut entry);
            item["entry"] = json!(jws::sign(self.0.signing(KeyUse::Chain), TokenType::Entry, &entry));
        }
        items
    }

    fn receipt(&self, change: impl Fn(&mut Receipt)) -> String {
        let published = export();
        let token = text(&published, "receipt");
        let mut receipt = jws::read::<Receipt>(token, TokenType::Receipt).unwrap().claims_unverified().clone();
        change(&mut receipt);
        jws::sign(self.0.signing(KeyUse::Chain), TokenType::Receipt, &receipt)
    }
}

fn page(items: &Value) -> String {
    json!({"entries": items, "next_page_token": null}).to_string()
}

fn archive(items: &[Value]) -> Value {
    json!({
        "countersign": "archive", "edition": 2, "thread": items[0]["statement"]["thread"], "entries": items, "ended": [],
        "from": items[0]["version"], "to": items[items.len() - 1]["version"],
    })
}

type AuditResult = (i32, Value, String);

fn found(audited: &AuditResult, code: &str) {
    let (exit, told, said) = audited;
    assert_eq!((*exit, told["findings"][0]["code"].as_str()), (1, Some(code)), "{told} {said}");
}

/// With an archive among the files.
fn with_archive(files: &[(&str, String)], name: &str, bytes: &[u8]) -> AuditResult {
    let export = ExportFolder::of(files);
    std::fs::write(export.folder.path().join(name), bytes).unwrap();
    export.audited(&[])
}

#[test]
fn export_without_its_first_versions_is_inconclusive() {
    let whole = export();
    let items = whole["chain"]["entries"].as_array().unwrap();
    let keys = ("jwks.json", whole["jwks"].to_string());
    let late = packed(&archive(&items[5..]).to_string()).unwrap();
    let (exit, told, _) = with_archive(std::slice::from_ref(&keys), "5.json.gz", &late);
    let doubt = told["could_not_tell"][0].as_str().unwrap();
    assert!(exit == 2 && told["sound"] == false && doubt.contains("versions 0 to 4 are missing"), "{told}");
    let early = packed(&archive(&items[..5]).to_string()).unwrap();
    let rest = page(&json!(items[5..]));
    assert_eq!(with_archive(&[keys.clone(), ("rest.json", rest)], "0.json.gz", &early).0, 0);

    // The page announces a next page. An archive that ends at the same version does not replace it.
    let begun = json!({"entries": items[..5], "next_page_token": 5}).to_string();
    found(&with_archive(&[keys.clone(), ("a.json", begun)], "z.json.gz", &early), "chain");

    for (spoiled, code) in [("from", "chain"), ("thread", "chain"), ("entries", "chain"), ("usage", "statement")] {
        let mut archive = archive(&items[..5]);
        match spoiled {
            "from" => archive["from"] = json!(1),
            "thread" => archive["thread"] = json!("another"),
            "entries" => archive["entries"] = json!([]),
            _ => drop(archive["entries"][2]["statement"].as_object_mut().unwrap().remove("usage")),
        }
        let bytes = packed(&archive.to_string()).unwrap();
        found(&with_archive(std::slice::from_ref(&keys), "0.json.gz", &bytes), code);
    }
    let more = [early, b"and more".to_vec()].concat();
    found(&with_archive(&[keys], "0.json.gz", &more), "chain");
}

#[test]
fn required_approval_is_not_lost_at_forks_and_joins() {
    let (file, forger) = (vectors("branches"), ForgingKeys::new());
    let chains = &file["chains"];
    let (left, right) = (&chains["branches"]["left"], &chains["branches"]["right"]);
    let fork = left[0]["statement"]["fork"]["version"].as_u64().unwrap();
    // Each chain requires its own approval (`owes`) from the given version on.
    let audited = |parent_owes: u64, left_owes: u64| {
        let from = |owes: u64| move |version: u64, it: &mut Entry| it.owes = version >= owes;
        let files = [
            ("jwks.json", forger.keys().to_string()),
            ("parent.json", page(&forger.signed(&chains["parent"], from(parent_owes)))),
            ("left.json", page(&forger.signed(left, from(left_owes)))),
            ("right.json", page(&forger.signed(right, from(0)))),
        ];
        ExportFolder::of(&files).audited(&[])
    };
    let all_owe = audited(0, 0);
    assert_eq!(all_owe.0, 0, "{all_owe:?}");
    // The head at the fork requires its own approval, and the first version of the branch does not.
    found(&audited(fork, 1), "owes");
    // A branch requires its own approval, and the thread that it was joined into does not.
    found(&audited(99, 1), "owes");
}

#[test]
fn different_entries_of_one_version_are_reported() {
    let (whole, forger) = (export(), ForgingKeys::new());
    let items = &whole["chain"]["entries"];
    let same = forger.signed(items, |_, _| ());
    let other = forger.signed(items, |_, it| it.committed_at = it.committed_at.plus(Duration::from_secs(1)));
    let audited = |other: &Value| {
        let other = page(&json!([other[9]]));
        let files = [("jwks.json", forger.keys().to_string()), ("a.json", page(&same)), ("b.json", other)];
        ExportFolder::of(&files).audited(&[])
    };
    assert_eq!(audited(&same).0, 0);
    found(&audited(&other), "chain");
}

#[test]
fn one_gateway_signs_all_of_an_export() {
    let (whole, forger) = (export(), ForgingKeys::new());
    let branches = vectors("branches");
    let mut keys = forger.keys();
    keys.as_object_mut().unwrap().remove("issuer").unwrap();
    let audited = |issuer: &str| {
        let parent = forger.signed(&branches["chains"]["parent"], |_, it| it.iss = issuer.to_owned());
        let own = forger.signed(&whole["chain"]["entries"], |_, _| ());
        let files = [("jwks.json", keys.to_string()), ("one.json", page(&own)), ("other.json", page(&parent))];
        ExportFolder::of(&files).audited(&[])
    };
    let same = audited("https://countersign.example");
    assert_eq!(same.0, 0, "{same:?}");
    found(&audited("https://elsewhere.example"), "issuer_mismatch");
}

#[test]
fn change_with_a_closed_opening_is_reported_as_partly_seen() {
    let mut whole = export();
    for item in whole["chain"]["entries"].as_array_mut().unwrap() {
        item["opening"] = json!({"from": item["statement"]["from"], "to": item["statement"]["to"]});
    }
    let (exit, told, _) = ExportFolder::whole(&whole).audited(&[]);
    // Only what changed nothing is seen by its roots.
    let items = whole["chain"]["entries"].as_array().unwrap();
    let nothing = items.iter().filter(|it| it["statement"]["from"] == it["statement"]["to"]).count();
    let changes = json!({"whole": nothing, "partly": items.len() - nothing, "not_seen": 0});
    assert_eq!((exit, &told["threads"][0]["changes"]), (0, &changes), "{told}");
}

#[test]
fn an_opening_has_one_form_at_each_place() {
    let whole = export();
    let opening = &whole["chain"]["entries"][2]["opening"];
    let leaf = &opening["to"]["object"]["target_user_id"];
    let (value, salt) = (&leaf["value"], &leaf["salt"]);
    for other in [
        json!({"value": value}),
        json!({"salt": salt}),
        json!({"value": value, "salt": "AA"}),
        json!({"value": value, "salt": salt, "object": {}}),
        json!({"value": value, "salt": salt, "more": 1}),
        json!({"object": {}, "array": []}),
        json!({}),
        json!(["array"]),
        json!(5),
        json!(null),
        json!("no commitment"),
    ] {
        let mut whole = whole.clone();
        whole["chain"]["entries"][2]["opening"]["to"]["object"]["target_user_id"] = other;
        found(&ExportFolder::whole(&whole).audited(&[]), "opening");
    }
}

#[test]
fn receipts_are_whole_counted_once_and_of_their_own_thread() {
    let (whole, forger) = (export(), ForgingKeys::new());
    let chain = page(&forger.signed(&whole["chain"]["entries"], |_, _| ()));
    let audited = |receipts: &[String]| {
        let named: Vec<String> = (0..receipts.len()).map(|it| format!("{it}.jwt")).collect();
        let mut files = vec![("jwks.json", forger.keys().to_string()), ("chain.json", chain.clone())];
        files.extend(named.iter().map(String::as_str).zip(receipts.iter().cloned()));
        ExportFolder::of(&files).audited(&[])
    };
    let good = forger.receipt(|_| ());
    let (exit, told, _) = audited(&[good.clone(), format!("{good}\r\n"), good]);
    assert_eq!((exit, &told["threads"][0]["receipts"]), (0, &json!(1)), "{told}");
    found(&audited(&[forger.receipt(|it| it.approvals.clear())]), "receipt_malformed");
    found(&audited(&[forger.receipt(|it| it.exp = it.iat - 1)]), "receipt_malformed");
    // One of another thread is looked at before it is put aside.
    let foreign = forger.receipt(|it| it.sub = "another".try_into().unwrap());
    assert_eq!(audited(std::slice::from_ref(&foreign)).0, 2);
    let mut forged = foreign.into_bytes();
    let last = forged.len() - 5;
    forged[last] = if forged[last] == b'A' { b'B' } else { b'A' };
    found(&audited(&[String::from_utf8(forged).unwrap()]), "signature_invalid");
    // One of a version that is not here may be good.
    let items = whole["chain"]["entries"].as_array().unwrap();
    let early = json!({"jwks": whole["jwks"], "receipt": whole["receipt"], "chain": {"entries": items[..2]}});
    assert_eq!(ExportFolder::whole(&early).audited(&[]).0, 2);
}

#[test]
fn a_key_that_the_export_says_was_revoked_is_a_doubt() {
    let mut whole = export();
    let trusted = ExportFolder::of(&[("keys", whole["jwks"].to_string())]);
    let keys = trusted.folder.path().join("keys").display().to_string();
    assert_eq!(ExportFolder::whole(&whole).audited(&["--jwks", &keys]).0, 0);
    whole["jwks"]["keys"][0]["status"] = json!("revoked");
    let (exit, told, _) = ExportFolder::whole(&whole).audited(&["--jwks", &keys]);
    assert!(exit == 2 && told["could_not_tell"][0].as_str().unwrap().contains("was revoked"), "{told}");
}

#[test]
fn line_breaks_in_names_are_escaped_and_unreadable_files_do_not_stop_the_audit() {
    let export = ExportFolder::whole(&export());
    let folder = export.folder.path();
    std::fs::write(folder.join("x\nno problems found in these files"), "").unwrap();
    std::os::unix::fs::symlink("chain.json", folder.join("linked.json")).unwrap();
    let (exit, told, _) = export.audited(&[]);
    let doubt = told["could_not_tell"][0].as_str().unwrap();
    assert!(exit == 2 && doubt.starts_with("linked.json") && told["threads"][0]["to"] == 9, "{told}");
    let mut line = Command::new(env!("CARGO_BIN_EXE_countersign"));
    let ran = line.args(["audit", "--export"]).arg(folder).output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(!text.lines().any(|it| it.starts_with("no problems found")), "{text}");
    assert_eq!(text.lines().last(), Some("could not tell"), "{text}");
}
