//! Crafted rows that lead to the findings that no change of a single leaf leads to.

use super::*;

/// Replaces the stored request of a rejection with another request.
pub fn another_request(bench: &mut ResealHarness) {
    let rejected = bench.pick(Table::Rejections, |it| it.body["request"].is_string());
    for (member, other, finding) in [
        ("usage", json!({"tokens": 1}), "the rejection differs from the event that records it"),
        ("content", json!({}), "the stored request differs from the one that was rejected"),
        ("tool", json!(null), "the stored request differs from the one that was rejected"),
        ("kind", json!("join"), "the join in the stored request differs from its branches"),
    ] {
        let mut request: Value = serde_json::from_str(rejected.body["request"].as_str().unwrap()).unwrap();
        assert_ne!(request[member], other, "{request}");
        request[member] = other;
        let mut body = rejected.body.clone();
        body["request"] = json!(request.to_string());
        bench.instead(Table::Rejections, &rejected, &body, finding);
    }
}

/// Crafts the rows for findings that need more than one changed leaf.
pub fn put_together(bench: &mut ResealHarness) {
    let keys = std::sync::Arc::clone(&bench.keys);
    let key = keys.row();
    let lane = bench.pick(Table::Lanes, |_| true);
    let mut beyond = lane.body.clone();
    beyond["reached"] = json!(1_000_000);
    bench.instead(Table::Lanes, &lane, &beyond, "the delivery cursor is beyond the end of the audit log");
    let voted =
        bench.pick(Table::Holds, |it| it.body["votes"][0].is_object() && it.body["votes"][0]["withdrawn"].is_null());
    let mut twice = voted.body.clone();
    let vote = twice["votes"][0].clone();
    twice["votes"].as_array_mut().unwrap().push(vote.clone());
    bench.instead(Table::Holds, &voted, &twice, "one person has two votes on the review");
    let mut author = voted.body.clone();
    author["excluded"] = json!([vote["name"]]);
    bench.instead(Table::Holds, &voted, &author, "an author of the change has a vote on the review");
    let signed = bench.pick(Table::Holds, |it| it.body["votes"][0]["proof"].is_object());
    let mut unsigned = signed.body.clone();
    unsigned["votes"][0].as_object_mut().unwrap().remove("proof");
    bench.instead(Table::Holds, &signed, &unsigned, "a vote lacks the passkey that its stage requires");

    for table in [Table::Entries, Table::States] {
        let kept = bench.pick(table, |_| true);
        let mut beyond = kept.body.clone();
        beyond["version"] = json!(99);
        if beyond.get("transition").is_some() {
            beyond["transition"] = json!(format!("sha256:{}", "0".repeat(64)));
        }
        bench.beside(table, &seal_of(table)(key, &beyond, 1).unwrap(), "the version is above the head of its thread");
    }
    let placed = bench.pick(Table::Log, |_| true);
    let pending = sealed::<UnsequencedEvent>(key, &json!({"event": placed.body["event"]}), 1).unwrap();
    bench.beside(Table::Outbox, &pending, "the event is in the audit log, but is still in the outbox");

    let thread = bench.pick(Table::Threads, |it| it.body["unresolved"] != json!([]));
    let mut settled = thread.body.clone();
    settled["unresolved"] = json!([]);
    bench.instead(Table::Threads, &thread, &settled, "a write with an expired lease is not listed as unresolved");
    let other = bench.pick(Table::Threads, |it| it.body["unresolved"] == json!([]));
    let mut doubtful = other.body.clone();
    doubtful["unresolved"] = json!([{"principal": "p", "write_id": "w"}]);
    bench.instead(Table::Threads, &other, &doubtful, "an unresolved write is not one whose lease expired");

    let branch = bench.pick(Table::Threads, |it| it.body["branch"].is_object());
    let forked = bench.pick(Table::Threads, |it| it.body["id"] == branch.body["branch"]["thread"]);
    let mut rebranched = forked.body.clone();
    rebranched["branch"] = branch.body["branch"].clone();
    bench.instead(Table::Threads, &forked, &rebranched, "the branch does not start with the head that it names");

    // One whose values are here: what an archive holds is looked at as a whole.
    let lacks = |it: &StoredRow, what: &[&str]| what.iter().all(|name| it.body[*name].is_null());
    let alone = bench.pick(Table::Transitions, |it| lacks(it, &["carried", "rationale", "values"]));
    let mut laden = alone.body.clone();
    laden["carried"] = json!({"authors": [], "committed_nodes": [], "spent": {}, "owes": false});
    bench.instead(Table::Transitions, &alone, &laden, "the transition has a carryover, but is not a join");
    let mut emptied = alone.body.clone();
    emptied["values"] = json!("archived");
    bench.instead(
        Table::Transitions,
        &alone,
        &emptied,
        "the values of the transition are missing, although its version is not erased",
    );
    let mut erased = bench.pick(Table::Archives, |_| true).body;
    erased["thread"] = alone.body["statement"]["thread"].clone();
    (erased["from"], erased["to"]) = (json!(0), json!(99));
    erased["kept"] = json!({"as": "erased", "at": erased["at"], "policy": erased["policy"]});
    let erased = sealed::<Archive>(key, &erased, 1).unwrap();
    bench.beside(
        Table::Archives,
        &erased,
        "the values of the transition are still stored, although its version is erased",
    );
    beside_its_archive(bench);

    let import = bench.pick(Table::Imports, |_| true);
    let mut namesake = other.body.clone();
    namesake["id"] = json!(import.id);
    let namesake = sealed::<Thread>(key, &namesake, 1).unwrap();
    bench.beside(Table::Threads, &namesake, "a thread has the same id as the imported episode");
    let archived = bench.pick(Table::Events, |it| it.body["type"] == "thread.archived");
    let mut unasked = archived.body.clone();
    unasked["data"]["policy"] = json!(format!("sha256:{}", "0".repeat(64)));
    let finding = "versions were archived or erased, although no policy of the flow allowed it";
    bench.instead(Table::Events, &archived, &unasked, finding);

    let outside = SealedRow { mac: vec![0; 32], ..pending.clone() };
    bench.beside(
        Table::Outbox,
        &outside,
        "the row does not have the seal of this gateway: it was changed, or belongs to another keyring",
    );
    let shapeless = SealedRow::seal(key, Table::Outbox, "x".to_owned(), pending.facets.clone(), 1, "{}".to_owned());
    let said = "the row is sealed, but its content is malformed or does not match its id and search columns";
    bench.beside(Table::Outbox, &shapeless, said);
}

/// A thread that rests on another policy than its chain does; and keys of which the keyring knows nothing.
pub fn other_grounds(bench: &mut ResealHarness) {
    let thread = bench.pick(Table::Threads, |it| it.body["lineage"].is_null());
    let mut resting = thread.body.clone();
    resting["lineage"] = json!([format!("sha256:{}", "0".repeat(64))]);
    bench.instead(Table::Threads, &thread, &resting, "the unapproved policies of the thread differ from its chain");
    let keys = std::sync::Arc::clone(&bench.keys);
    let mut turned = bench.pick(Table::Events, |it| it.body["thread"].is_null()).body;
    (turned["id"], turned["type"]) = (json!("turned"), json!("key.rotated"));
    let signing = keys.signing(KeyUse::Chain).kid();
    for (data, finding) in [
        (
            json!({"use": "chain", "signing": "another", "revoked": null, "by": "x"}),
            "the keyring does not have this key as signing: use the current keyring file, not an older copy",
        ),
        (
            json!({"use": "chain", "signing": signing, "revoked": signing, "by": "x"}),
            "the keyring does not have this key as revoked: use the current keyring file, not an older copy",
        ),
    ] {
        turned["data"] = data;
        let row = seal_of(Table::Events)(keys.row(), &turned, 1).unwrap();
        bench.beside(Table::Events, &row, finding);
    }
}

/// Puts an archived transition back into the database, and changes the rows that locate archived transitions.
fn beside_its_archive(bench: &mut ResealHarness) {
    let keys = std::sync::Arc::clone(&bench.keys);
    let archive: Archive = serde_json::from_value(bench.pick(Table::Archives, |_| true).body).unwrap();
    let content = ArchiveContent::read(&bench.archives.read(&archive).unwrap()).unwrap();
    let row = content.entries[1].row().seal(keys.row(), 1).unwrap();
    bench.beside(
        Table::Transitions,
        &row,
        "the archive file does not match the rows that were taken out of the database",
    );
    let place = bench.pick(Table::Whereabouts, |it| it.body["version"] == 1);
    let mut moved = place.body.clone();
    moved["version"] = json!(2);
    let finding = "a transition of the archive has no matching row in whereabouts";
    bench.instead(Table::Whereabouts, &place, &moved, finding);
    let mut strange = place.body.clone();
    strange["transition"] = json!(format!("sha256:{}", "0".repeat(64)));
    let strange = sealed::<ArchivedLocation>(keys.row(), &strange, 1).unwrap();
    bench.beside(Table::Whereabouts, &strange, "no archive contains the transition");
}

/// Removes the approval from a policy that reviewers approved.
pub fn amended(bench: &mut ResealHarness) {
    let activated = bench.pick(Table::Amendments, |it| it.body["state"]["state"] == "activated");
    let mut unvoted = activated.body.clone();
    unvoted["votes"] = json!([]);
    bench.instead(Table::Amendments, &activated, &unvoted, "it was activated without the required quorum");
    let mut unsigned = activated.body.clone();
    unsigned["stages"][0]["passkey"] = json!({"asks": "signature"});
    bench.instead(Table::Amendments, &activated, &unsigned, "a vote lacks the passkey that its stage requires");
    let mut unproven = activated.body.clone();
    unproven["votes"][0]["proof"] =
        json!({"by": "passkey_session", "passkey": "AAAAAAAAAAAAAAAAAAAAAA", "at": activated.body["opened_at"]});
    let finding = "a vote is not signed by a passkey of its voter";
    bench.instead(Table::Amendments, &activated, &unproven, finding);
    let mut open = activated.body.clone();
    open["state"] = json!({"state": "open"});
    let finding = "a policy was activated without the approval that it required";
    bench.instead(Table::Amendments, &activated, &open, finding);
    let by_itself = |it: &StoredRow| it.body["type"] == "policy.activated" && it.body["data"]["revision"] != 1;
    let named = bench.pick(Table::Events, |it| by_itself(it) && it.body["data"]["amendment"].is_string());
    let mut unnamed = named.body.clone();
    unnamed["data"].as_object_mut().unwrap().remove("amendment");
    bench.instead(Table::Events, &named, &unnamed, finding);
    let unasked = bench.pick(Table::Events, |it| by_itself(it) && it.body["data"]["amendment"].is_null());
    let mut false_name = unasked.body.clone();
    false_name["data"]["amendment"] = json!("none");
    bench.instead(Table::Events, &unasked, &false_name, finding);
    let first =
        bench.pick(Table::Events, |it| it.body["type"] == "policy.activated" && it.body["data"]["revision"] == 1);
    let mut named = first.body.clone();
    named["data"]["amendment"] = activated.body["id"].clone();
    bench.instead(Table::Events, &first, &named, "the first policy of the flow names a policy change request");
}

/// Removes the second person from a halt that two people lifted.
pub fn lifted(bench: &mut ResealHarness) {
    let finding = "a halt was lifted without its second person";
    let lifted = |it: &StoredRow| it.body["type"] == "access.halt_lifted" && it.body["data"]["confirms"].is_object();
    let lift = bench.pick(Table::Events, lifted);
    let first = lift.body["data"]["confirms"]["person"].clone();
    let alone: [&dyn Fn(&mut Value); 4] = [
        &|data| drop(data.as_object_mut().unwrap().remove("confirms")),
        &|data| data["person"] = first.clone(),
        &|data| data["by"] = first.clone(),
        &|data| data["confirms"]["at"] = json!("2026-11-21T01:36:40.123Z"),
    ];
    for spoil in alone {
        let mut body = lift.body.clone();
        spoil(&mut body["data"]);
        bench.instead(Table::Events, &lift, &body, finding);
    }
    let asked = bench.pick(Table::Events, |it| {
        it.body["type"] == "access.halt_lifting"
            && it.body["data"]["person"] == first
            && it.body["data"]["reason"] == "a false alarm"
    });
    let mut other = asked.body.clone();
    other["data"]["verifying"] = json!(true);
    bench.instead(Table::Events, &asked, &other, finding);
}

/// With the signing key too: a link of a chain that states something else, signed again.
pub fn signed_again(bench: &mut ResealHarness) {
    let keys = std::sync::Arc::clone(&bench.keys);
    let other_root = json!(format!("sha256:{}", "0".repeat(64)));
    type RowTamper<'a> = (u64, &'a str, &'a dyn Fn(&mut Value, &mut Value));
    let spoils: [RowTamper<'_>; 3] = [
        (1, "it does not start from the state before", &|statement, _| statement["from"] = other_root.clone()),
        (1, "`owes` of the entry does not follow from its chain", &|_, entry| entry["owes"] = json!(true)),
        (0, "the policy does not allow the node to fork", &|statement, _| statement["node"] = json!("input_parser")),
    ];
    let branch = bench.pick(Table::Threads, |it| it.body["branch"].is_object()).body["id"].clone();
    for (version, finding, spoil) in spoils {
        let thread = if version == 0 { branch.clone() } else { json!("round") };
        let entry_row = bench.pick(Table::Entries, |it| it.body["thread"] == thread && it.body["version"] == version);
        let transition_row = bench.pick(Table::Transitions, |it| it.body["digest"] == entry_row.body["transition"]);
        let claims = entry_row.body["entry"].as_str().unwrap().split('.').nth(1).unwrap();
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        let (mut statement, mut entry) = (transition_row.body["statement"].clone(), claims.clone());
        spoil(&mut statement, &mut entry);
        let digest = serde_json::from_value::<Statement>(statement.clone()).unwrap().digest();
        entry["transition"] = json!(digest);
        let entry: Entry = serde_json::from_value(entry).unwrap();
        let token = jws::sign(keys.signing(KeyUse::Chain), TokenType::Entry, &entry);
        let mut transition = transition_row.body.clone();
        transition["statement"] = statement;
        transition["digest"] = json!(digest);
        transition["outcome"]["entry"] = json!(token);
        let mut place = entry_row.body.clone();
        place["transition"] = json!(digest);
        place["entry"] = json!(token);
        let place = sealed::<ChainRow>(keys.row(), &place, 1).unwrap();
        let transition = sealed::<Transition>(keys.row(), &transition, transition_row.revision).unwrap();
        assert!(bench.edit(Table::Entries, Some(&entry_row.id), Some(&place)));
        assert!(bench.edit(Table::Transitions, Some(&transition_row.id), Some(&transition)));
        let found = bench.findings();
        bench.undo(Table::Entries, Some(&entry_row.id), Some(&place));
        bench.undo(Table::Transitions, Some(&transition_row.id), Some(&transition));
        assert!(found.iter().any(|it| it.ends_with(finding)), "{finding}: {found:#?}");
    }
}
