//! The gateway agrees with the published vectors, which an independent implementation made.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use countersign_domain::chain::commitment::{LeafSource, Origins, Tree};
use countersign_domain::chain::entry::Entry;
use countersign_domain::chain::hash::{Digest, Tag};
use countersign_domain::chain::jws::{self, TokenClaims, TokenType};
use countersign_domain::chain::link::{ChainLink, check_link};
use countersign_domain::chain::opening::{Opening, OpeningSelection, SaltComparison, open};
use countersign_domain::chain::receipt::{Denial, Receipt, Verification};
use countersign_domain::chain::signed_vote::{PolicyVoteStatement, Signable as _, VoteEvidence};
use countersign_domain::chain::statement::{Statement, TransitionType};
use countersign_domain::chain::verify_receipt_offline::PinnedPasskey;
use countersign_domain::chain::verify_write::read_receipt;
use countersign_domain::context::{
    Envelope, EnvelopeClaims, EnvelopeCode, ExpectedEnvelope, NodeSecrets, NodeSecretsView, Rotation, check,
};
use countersign_domain::episode::manifest;
use countersign_domain::identity::passkey::AssertionRejected;
use countersign_domain::interrupts::InterruptAnswer;
use countersign_domain::json::canonical::canonical;
use countersign_domain::json::diff::diff;
use countersign_domain::json::parse::{ParseLimits, parse};
use countersign_domain::json::patch::{Patch, PatchFormat};
use countersign_domain::json::pattern::Pattern;
use countersign_domain::json::pointer::Pointer;
use countersign_domain::json::size::StateLimits;
use countersign_domain::json::state_delta::Delta;
use countersign_domain::keys::{KeyUse, PublicKeys, RowKey, ThreadSecret};
use countersign_domain::policy::{Policy, PolicySource};
use countersign_domain::primitives::id::{BranchName, NodeId, PrincipalId, ProposalId, StepKey, ThreadId};
use countersign_domain::primitives::time::Timestamp;
use countersign_domain::threads::branch::{Branch, Strategy};
use countersign_domain::threads::join::{BranchState, JoinOptions, JoinRejected, Resolutions, join};
use countersign_domain::threads::rejected_request::RejectedRequest;
use countersign_domain::threads::step::content_of;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::transition::patch_digest;
use serde_json::{Value, json};

#[path = "protocol_vectors/branches.rs"]
mod branches;
#[path = "protocol_vectors/command.rs"]
mod command;
#[path = "protocol_vectors/exports.rs"]
mod exports;
#[path = "protocol_vectors/tokens.rs"]
mod tokens;

fn vectors(name: &str) -> Value {
    let path = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let limits = ParseLimits { bytes_max: 1 << 24, ..ParseLimits::default() };
    parse(&std::fs::read(path).unwrap(), &limits).unwrap()
}

fn cases(of: &Value, list: &str) -> Vec<Value> {
    let cases = of[list].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

fn digest(value: &Value, key: &str) -> Digest {
    Digest::try_from(text(value, key)).unwrap()
}

fn bytes32(hex: &str) -> [u8; 32] {
    let byte = |at: usize| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap();
    std::array::from_fn(byte)
}

#[test]
fn every_text_has_its_canonical_form_or_its_code() {
    for case in cases(&vectors("json"), "cases") {
        let bytes = match case.get("text") {
            Some(text) => text.as_str().unwrap().as_bytes().to_vec(),
            None => STANDARD.decode(text(&case, "base64")).unwrap(),
        };
        let default = ParseLimits::default();
        let limit = |name: &str, or: usize| case["limits"][name].as_u64().map_or(or, |it| usize::try_from(it).unwrap());
        let limits = ParseLimits {
            bytes_max: limit("bytes_max", default.bytes_max),
            depth_max: limit("depth_max", default.depth_max),
        };
        match (parse(&bytes, &limits), case.get("canonical")) {
            (Ok(value), Some(form)) => assert_eq!(canonical(&value), form.as_str().unwrap(), "{}", case["name"]),
            (Err(error), None) => assert_eq!(error.code.as_str(), text(&case, "code"), "{}", case["name"]),
            (outcome, _) => panic!("{}: {outcome:?}", case["name"]),
        }
    }
}

#[test]
fn every_difference_is_found_leaf_by_leaf_and_a_delta_leads_there() {
    for case in cases(&vectors("diffs"), "cases") {
        let (before, after) = (&case["before"], &case["after"]);
        let mut found: Vec<String> = diff(before, after)
            .iter()
            .map(|change| {
                let mut line = json!({"pointer": change.pointer});
                if let Some(value) = &change.before {
                    line["before"] = value.clone();
                }
                if let Some(value) = &change.after {
                    line["after"] = value.clone();
                }
                canonical(&line)
            })
            .collect();
        let mut expected: Vec<String> = case["changes"].as_array().unwrap().iter().map(canonical).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{}", case["name"]);
        assert_eq!(&Delta::between(before, after).apply(before).unwrap(), after, "{}", case["name"]);
    }
}

#[test]
fn every_patch_has_its_result_or_is_refused() {
    let mut stricter = Vec::new();
    for case in cases(&vectors("patches"), "cases") {
        let format: PatchFormat = serde_json::from_value(case["format"].clone()).unwrap();
        let done = Patch::read(format, case["patch"].clone())
            .and_then(|patch| patch.apply(&case["state"], &StateLimits::default()));
        match (done, case.get("result")) {
            (Ok(after), Some(result)) => assert_eq!(&after, result, "{}", case["name"]),
            (Err(_), None) => {}
            (Err(_), Some(_)) => stricter.push(text(&case, "name").to_owned()),
            (Ok(after), None) => panic!("{}: {after}", case["name"]),
        }
    }
    // RFC 6902 has unknown members of an operation ignored; here they are refused, as everywhere else.
    assert!(stricter.iter().all(|name| name.contains("member") || name.contains("ignored")), "{stricter:?}");
}

fn origins(of: &Value) -> Origins {
    let mut by_proposal: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (pointer, proposal) in of.as_object().unwrap() {
        by_proposal.entry(proposal.as_str().unwrap().to_owned()).or_default().push(pointer.clone());
    }
    serde_json::from_value(json!(by_proposal)).unwrap()
}

fn by_leaf(of: &Origins) -> BTreeMap<String, String> {
    let value = serde_json::to_value(of).unwrap();
    let leaves = value.as_object().unwrap().iter().flat_map(|(proposal, leaves)| {
        leaves.as_array().unwrap().iter().map(move |leaf| (leaf.as_str().unwrap().to_owned(), proposal.clone()))
    });
    leaves.collect()
}

fn thread_secret(salt_key: &str, thread: &str) -> ThreadSecret {
    let derived = ThreadSecret::from_bytes(&bytes32(salt_key)).hmac(thread.as_bytes());
    ThreadSecret::from_bytes(&derived)
}

#[test]
fn every_state_commits_to_its_root() {
    let file = vectors("commitments");
    for case in cases(&file, "cases") {
        let secret = thread_secret(text(&case, "salt_key"), text(&case, "thread"));
        let tree = Tree::restore(&secret, &case["state"], &origins(&case["origins"])).unwrap();
        assert_eq!(tree.root(), digest(&case, "root"), "{}", case["name"]);
        assert_eq!(json!(by_leaf(&tree.origins())), case["origins"], "{}", case["name"]);
        let view = OpeningSelection { hidden: &|_| false, wanted: &|_| true };
        let all = serde_json::to_value(open((&case["state"], &tree), (&case["state"], &tree), &view)).unwrap();
        for leaf in cases(&case, "leaves") {
            let place = text(&leaf, "pointer").split('/').skip(1).fold(&all["from"], |at, token| {
                let token = token.replace("~1", "/").replace("~0", "~");
                let inside = at.get("object").and_then(|it| it.get(&token));
                inside.unwrap_or_else(|| &at["array"][token.parse::<usize>().unwrap_or(0)])
            });
            assert_eq!((&place["value"], &place["salt"]), (&leaf["value"], &leaf["salt"]), "{}", case["name"]);
        }
    }
    for step in cases(&file, "steps") {
        let secret = ThreadSecret::from_bytes(&[7; 32]);
        let before = Tree::restore(&secret, &step["before"], &origins(&step["origins"])).unwrap();
        let proposal = ProposalId::try_from(text(&step, "proposal")).unwrap();
        let setting = LeafSource { proposal: &proposal, named: &named(&step) };
        let after = before.advance(&secret, &step["before"], &step["after"], &setting);
        assert_eq!(json!(by_leaf(&after.origins())), step["origins_after"], "{}", step["name"]);
        let restored = Tree::restore(&secret, &step["after"], &after.origins()).unwrap();
        assert_eq!(restored.root(), after.root(), "{}", step["name"]);
    }
}

fn named(of: &Value) -> BTreeSet<Pointer> {
    serde_json::from_value(of["named"].clone()).unwrap()
}

fn roots(case: &Value) -> Option<(Digest, Digest)> {
    let opening: Opening = serde_json::from_value(case["opening"].clone()).ok()?;
    opening.from.root().zip(opening.to.root())
}

#[test]
fn every_opening_gives_both_roots_and_its_salts_fit_and_of_no_spoiled_one_both_are_so() {
    let file = vectors("openings");
    for case in cases(&file, "cases") {
        assert_eq!(roots(&case), Some((digest(&case, "from_root"), digest(&case, "to_root"))), "{}", case["name"]);
        let made = &case["made_from"];
        let patterns = |list: &str| -> Vec<Pattern> {
            made[list].as_array().unwrap().iter().map(|it| Pattern::try_from(it.as_str().unwrap()).unwrap()).collect()
        };
        let (hide, reads) = (patterns("hide"), patterns("reads"));
        let secret = thread_secret(text(made, "salt_key"), text(made, "thread"));
        let (before, after) = (&made["before"], &made["after"]);
        let from = Tree::restore(&secret, before, &origins(&made["origins"])).unwrap();
        let proposal = ProposalId::try_from(text(made, "proposal")).unwrap();
        let to = from.advance(&secret, before, after, &LeafSource { proposal: &proposal, named: &named(made) });
        let hidden = |at: &Pointer| hide.iter().any(|it| it.covers(at));
        let wanted = |at: &Pointer| reads.iter().any(|it| it.touches(at));
        let opening = open((before, &from), (after, &to), &OpeningSelection { hidden: &hidden, wanted: &wanted });
        assert_eq!(serde_json::to_value(&opening).unwrap(), case["opening"], "{}", case["name"]);
        let again =
            case["set_again"].as_array().unwrap().iter().map(|it| Pointer::try_from(text(it, "pointer")).unwrap());
        let salting = SaltComparison { set_again: again.collect(), ..SaltComparison::default() };
        assert_eq!(opening.salting(), salting, "{}", case["name"]);
    }
    for case in cases(&file, "spoiled") {
        let good = (digest(&case, "from_root"), digest(&case, "to_root"));
        assert_ne!(roots(&case), Some(good), "{}", case["name"]);
    }
    for case in cases(&file, "inconsistent") {
        assert_eq!(roots(&case), Some((digest(&case, "from_root"), digest(&case, "to_root"))), "{}", case["name"]);
        let opening: Opening = serde_json::from_value(case["opening"].clone()).unwrap();
        assert!(!opening.salting().kept.is_empty(), "{}", case["name"]);
    }
}

#[test]
fn every_statement_has_its_digest_and_no_other_form_is_one() {
    check_statements(&vectors("statements"), "cases");
}

fn check_statements(file: &Value, list: &str) {
    for case in cases(file, list) {
        let statement: Statement = serde_json::from_value(case["statement"].clone()).unwrap();
        assert_eq!(statement.canonical(), text(&case, "jcs"), "{}", case["name"]);
        assert_eq!(statement.digest(), digest(&case, "digest"), "{}", case["name"]);
    }
    let mut read = Vec::new();
    for case in cases(file, "refused") {
        let statement = serde_json::from_value::<Statement>(case["statement"].clone());
        if statement.is_ok_and(|it| it.is_whole() && serde_json::to_value(&it).unwrap() == case["statement"]) {
            read.push(text(&case, "name").to_owned());
        }
    }
    assert_eq!(read, Vec::<String>::new());
}

#[test]
fn policies_proposals_and_texts_have_their_hashes() {
    for case in cases(&vectors("policies"), "cases") {
        let schemas = serde_json::from_value(case["schemas"].clone()).unwrap();
        let source = PolicySource { text: text(&case, "policy").to_owned(), schemas };
        assert_eq!(source.digest(), digest(&case, "digest"), "{}", case["name"]);
    }
    check_identities(&json!({"proposals": vectors("proposals")["cases"]}));
    for case in cases(&vectors("hashes"), "cases") {
        let tag = match text(&case, "tag") {
            "countersign.rationale.v1" => Tag::Rationale,
            "countersign.comment.v1" => Tag::Comment,
            other => panic!("{other}"),
        };
        assert_eq!(Digest::of(tag, &[text(&case, "text").as_bytes()]), digest(&case, "hash"));
    }
}

fn check_identities(file: &Value) {
    for case in cases(file, "proposals") {
        let of = &case["proposal"];
        let secret = thread_secret(text(&case, "salt_key"), text(of, "thread"));
        for patch in case["patch_texts"].as_array().unwrap() {
            let asked = RejectedRequest {
                kind: serde_json::from_value::<TransitionType>(of["type"].clone()).unwrap(),
                format: serde_json::from_value(of["format"].clone()).unwrap(),
                content: parse(patch.as_str().unwrap().as_bytes(), &ParseLimits::default()).unwrap(),
                attempt: u32::try_from(of["attempt"].as_u64().unwrap()).unwrap(),
                tool: of.get("tool").map(|it| Tool::read(it).unwrap()),
                usage: None,
                step: of["step"].as_str().map(|it| StepKey::try_from(it).unwrap()),
                join: None,
            };
            let thread = ThreadId::try_from(text(of, "thread")).unwrap();
            let node = NodeId::try_from(text(of, "node")).unwrap();
            let principal = PrincipalId::try_from(text(of, "principal")).unwrap();
            let identity = asked.identity(&secret, &thread, digest(of, "parent"), &node, &principal);
            assert_eq!(patch_digest(&secret, &asked.content), digest(&case, "patch_hash"), "{}", case["name"]);
            assert_eq!(identity, digest(&case, "identity"), "{}", case["name"]);
            assert_eq!(content_of(&secret, &asked), digest(&case, "content"), "{}", case["name"]);
        }
    }
}

#[test]
fn every_genuine_envelope_is_believed_and_every_spoiled_one_refused_with_its_code() {
    let file = vectors("envelopes");
    let keys = PublicKeys::from_jwks(&file["jwks"]).unwrap();
    let (thread, node) = (text(&file, "thread").try_into().unwrap(), text(&file, "node").try_into().unwrap());
    let expected = ExpectedEnvelope {
        issuer: Some("https://countersign.example"),
        thread: Some(&thread),
        node: Some(&node),
        version: file["version"].as_u64(),
        ..ExpectedEnvelope::by(&keys)
    };
    let checked = |case: &Value| match serde_json::from_value::<Envelope>(case["envelope"].clone()) {
        Ok(envelope) => check(&envelope, &expected).map(drop).map_err(EnvelopeCode::as_str),
        Err(_) => Err("envelope_malformed"),
    };
    for case in cases(&file, "genuine") {
        assert_eq!(checked(&case), Ok(()), "{}", case["name"]);
    }
    for case in cases(&file, "spoiled") {
        assert_eq!(checked(&case), Err(text(&case, "code")), "{}", case["name"]);
    }
}

#[test]
fn every_genuine_hmac_is_believed_and_every_spoiled_one_refused_with_its_code() {
    let file = vectors("envelopes");
    let said = &file["hmac"];
    let keys = PublicKeys::from_jwks(&file["jwks"]).unwrap();
    let shown: NodeSecretsView = serde_json::from_value(said["secrets"].clone()).unwrap();
    let moment = |name: &str| Timestamp::parse(text(said, name)).unwrap();
    let secs = |name: &str| Duration::from_secs(said[name].as_u64().unwrap());
    let rotation = Rotation { period: secs("period_secs"), overlap: secs("overlap_secs") };
    let row_key = RowKey::from_bytes(&bytes32(text(said, "row_key")));
    let made = NodeSecrets::of(&row_key, &shown.flow, &shown.node, &rotation, moment("now"));
    assert_eq!(json!(made.shown()), said["secrets"]["secrets"], "they follow from the row key");
    assert_eq!(rotation.next(rotation.epoch(moment("now"))), shown.rotates_at);
    let (given, later) = (NodeSecrets::read(&shown, moment("now")), NodeSecrets::read(&shown, moment("later")));
    let (given, later) = (given.unwrap(), later.unwrap());
    let thread = text(&file, "thread").try_into().unwrap();
    let checked = |case: &Value, secrets: &NodeSecrets| {
        let expected = ExpectedEnvelope {
            issuer: Some("https://countersign.example"),
            thread: Some(&thread),
            node: Some(&shown.node),
            version: file["version"].as_u64(),
            secrets: Some(secrets),
            ..ExpectedEnvelope::by(&keys)
        };
        match serde_json::from_value::<Envelope>(case["envelope"].clone()) {
            Ok(envelope) => check(&envelope, &expected).map(drop).map_err(EnvelopeCode::as_str),
            Err(_) => Err("envelope_malformed"),
        }
    };
    for case in cases(said, "genuine") {
        assert_eq!(checked(&case, &given), Ok(()), "{}", case["name"]);
        assert_eq!(checked(&case, &made), Ok(()), "{}", case["name"]);
    }
    assert_eq!(checked(&said["genuine"][0], &later), Err("hmac_expired"));
    for case in cases(said, "spoiled") {
        assert_eq!(checked(&case, &given), Err(text(&case, "code")), "{}", case["name"]);
        assert_eq!(checked(&case, &made), Err(text(&case, "code")), "{}", case["name"]);
    }
}

#[test]
fn the_published_chain_links_and_re_commits_link_by_link() {
    let chain = vectors("export/chain");
    let keys = PublicKeys::from_jwks(&vectors("export/jwks")).unwrap();
    let mut parent = None;
    for entry in cases(&chain, "entries") {
        let statement: Statement = serde_json::from_value(entry["statement"].clone()).unwrap();
        let opening: Opening = serde_json::from_value(entry["opening"].clone()).unwrap();
        let root = opening.to.root().unwrap();
        let link = ChainLink { entry: text(&entry, "entry"), statement: &statement, root };
        let signed = check_link(&link, &keys, "https://countersign.example").unwrap();
        assert_eq!(signed.parent, parent);
        assert_eq!(opening.from.root(), Some(statement.from));
        parent = Some(signed.transition);
        let other = ChainLink { root: statement.from, ..link };
        assert!(statement.from == statement.to || check_link(&other, &keys, "https://countersign.example").is_err());
    }
}
