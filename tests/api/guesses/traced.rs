//! Guesses whose author is found only after many steps: they were copied, moved or joined after they were written.

use countersign_domain::identity::account::MachineRole;
use serde_json::{Value, json};

use super::fetched::FetchedFacts;
use super::{CARDS, GuessTexts, GuessWorld, GuessingParty, POLICY, told_apart};
use crate::gateway::{ApiResponse, owned_token};

/// Versions whose statements a trace reads before it bisects.
const VERSIONS_WALKED_MAX: usize = 256;

async fn propose(world: &GuessWorld, thread: &Value, parent: &Value, (by, patch): (&str, Value)) -> ApiResponse {
    world.g.propose(thread, parent, (by, "planner"), patch).await
}

async fn fork(world: &GuessWorld, thread: &str, (by, names): (&str, &[&str])) -> Value {
    let body = json!({"node": "planner", "branches": names});
    world.g.post(&format!("/v1/threads/{thread}/forks"), by, body).await.expect(201)
}

/// Joins branches of the thread as another party than the one that guesses.
async fn join(world: &GuessWorld, made: &Value, names: &[&str]) -> Value {
    let body = json!({"node": "planner", "parent": made["transition"], "branches": names, "strategy": "union"});
    let path = format!("/v1/threads/{}/joins", made["thread"].as_str().unwrap());
    world.g.post(&path, &world.g.planner, body).await.expect(201)
}

/// Writes guesses into a list and moves them to another one and back. Returns the thread and its head.
async fn move_guesses(
    (world, party): (&GuessWorld, &GuessingParty),
    guesses: &[String],
    moves: usize,
) -> (Value, Value) {
    let made = world.thread(&party.host, &GuessTexts::PLAIN).await;
    let (thread, mut head) = (made["thread"].clone(), made["transition"].clone());
    for it in 0..=moves {
        let (here, there) = if it % 2 == 0 { (json!(guesses), json!([])) } else { (json!([]), json!(guesses)) };
        let patch = json!({"notes": {"one": here, "other": there}});
        head = propose(world, &thread, &head, (&party.agent, patch)).await.expect(201)["transition"].clone();
    }
    (thread, head)
}

async fn fetch_all(known: &mut FetchedFacts, world: &GuessWorld, party: &GuessingParty) {
    known.look_up(&world.g).await;
    known.fetch_as_machine(&world.g, MachineRole::Host, &party.host).await;
    known.fetch_as_person(&world.g, &party.owner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guess_that_was_copied_and_moved_many_times_keeps_its_author() {
    let mut seen = Vec::new();
    for which in 0..2 {
        let world = GuessWorld::new(which).await;
        let party = world.party().await;
        let guesses: Vec<String> = CARDS.iter().flat_map(|it| vec![(*it).to_owned(); 8]).collect();
        let (thread, head) = move_guesses((&world, &party), &guesses, 40).await;
        // Only the last versions are fetched: each of them leads back through all others.
        let mut known = world.known().await;
        known.threads.push(thread.as_str().unwrap().to_owned());
        let patch = json!({"raw_text": "the end", "notes": {"one": [], "other": guesses}});
        propose(&world, &thread, &head, (&party.agent, patch)).await.expect(201);
        fetch_all(&mut known, &world, &party).await;
        seen.push(known.seen);
    }
    told_apart::nothing(&seen[0], &seen[1]);
}

/// A party that knows one redacted value writes it into thousands of texts before its guess. Another party forks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_texts_with_a_known_value_do_not_use_up_the_steps_of_a_guess() {
    const TEXTS: usize = 2_100;
    const KNOWN: &str = "a birthday that the party set";
    let blind = "[nodes.pinner]\nreads = [\"notes\"]\nwrites = [\"notes\", \"customer\"]\n\n[nodes.database_writer]";
    let policy = POLICY.replace("[nodes.database_writer]", blind);
    let mut seen = Vec::new();
    for which in 0..2 {
        let world = GuessWorld::with_policy(which, &policy).await;
        let party = world.party().await;
        let g = &world.g;
        let pinner = owned_token(&g.service, "olgas-pinner", MachineRole::Agent, &["pinner"], "olga").await;
        let made = world.thread(&party.host, &GuessTexts::PLAIN).await;
        let known_texts: Vec<String> = (0..TEXTS).map(|it| format!("{KNOWN} {it}")).collect();
        let patch = json!({"customer": {"birthday": KNOWN}, "notes": {"a": known_texts, "z": CARDS}});
        g.propose(&made["thread"], &made["transition"], (&pinner, "pinner"), patch).await.expect(201);
        let branches = fork(&world, made["thread"].as_str().unwrap(), (&g.planner, &["one"])).await;
        let mut known = world.known().await;
        let path = format!("/v1/transitions/{}", branches["branches"][0]["transition"].as_str().unwrap());
        let shown = known.answer(g.get(&path, &party.host).await, 200);
        assert!(shown.to_string().contains(CARDS[0]), "{shown}");
        seen.push(known.seen);
    }
    told_apart::nothing(&seen[0], &seen[1]);
}

/// The versions after the guess are harmless, and the last one removes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guess_keeps_its_author_after_many_versions() {
    let mut seen = Vec::new();
    for which in 0..2 {
        let world = GuessWorld::new(which).await;
        let party = world.party().await;
        let made = world.thread(&party.host, &GuessTexts::PLAIN).await;
        let patch = json!({"notes": {"guesses": CARDS}});
        let set = propose(&world, &made["thread"], &made["transition"], (&party.agent, patch)).await.expect(201);
        let mut head = set["transition"].clone();
        for it in 0..VERSIONS_WALKED_MAX + 10 {
            let patch = json!({"raw_text": format!("version {it}")});
            head =
                propose(&world, &made["thread"], &head, (&party.agent, patch)).await.expect(201)["transition"].clone();
        }
        let mut known = world.known().await;
        let patch = json!({"notes": {}});
        let last = propose(&world, &made["thread"], &head, (&party.agent, patch)).await.expect(201);
        let path = format!("/v1/transitions/{}", last["transition"].as_str().unwrap());
        let shown = known.answer(world.g.get(&path, &party.host).await, 200);
        assert!(shown.to_string().contains(CARDS[0]), "{shown}");
        seen.push(known.seen);
    }
    told_apart::nothing(&seen[0], &seen[1]);
}

/// The joiner is another party. The item with the guess is the second one in its branch and the third one after the join.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guess_keeps_its_author_if_a_join_puts_its_item_at_another_index() {
    let mut seen = Vec::new();
    for which in 0..2 {
        let keyed = format!("{POLICY}\n[transitions.keyed_arrays.found]\nkey = \"id\"\n");
        let world = GuessWorld::with_policy(which, &keyed).await;
        let (g, party) = (&world.g, world.party().await);
        let made = world.thread(&g.host, &GuessTexts::PLAIN).await;
        let thread = made["thread"].as_str().unwrap().to_owned();
        let forked = fork(&world, &thread, (&g.planner, &["law", "press"])).await;
        for (index, by, item) in
            [(0, &g.planner, json!({"id": "statute"})), (1, &party.agent, json!({"id": "article", "text": CARDS[0]}))]
        {
            let (branch, patch) = (&forked["branches"][index], json!({"found": [{"id": "start"}, item]}));
            propose(&world, &branch["thread"], &branch["transition"], (by, patch)).await.expect(201);
        }
        let mut known = world.known().await;
        let joined = join(&world, &made, &["law", "press"]).await;
        let path = format!("/v1/threads/{thread}/state?node=planner");
        let state = g.get(&path, &g.planner).await.expect(200);
        assert_eq!(state["state"]["found"][2]["text"], CARDS[0], "{joined} {state}");
        known.threads.push(thread.clone());
        fetch_all(&mut known, &world, &party).await;
        // Lists of threads have both branches in a random order.
        known.seen.retain(|(address, _)| address.contains(&thread) || address.contains("/v1/transitions/"));
        seen.push(known.seen);
    }
    told_apart::nothing(&seen[0], &seen[1]);
}

/// The party names a branch by a guess, and another party forks last and joins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_name_of_a_branch_keeps_its_author_in_a_run_if_others_fork_and_join() {
    let mut seen = Vec::new();
    for which in 0..2 {
        let world = GuessWorld::new(which).await;
        let (g, party) = (&world.g, world.party().await);
        let made = world.thread(&g.host, &GuessTexts::PLAIN).await;
        let thread = made["thread"].as_str().unwrap().to_owned();
        for (by, name, field) in [(&party.agent, CARDS[0], "one"), (&g.planner, "press", "other")] {
            let branch = fork(&world, &thread, (by, &[name])).await["branches"][0].clone();
            let patch = json!({"notes": {field: "found"}});
            propose(&world, &branch["thread"], &branch["transition"], (&g.planner, patch)).await.expect(201);
        }
        let mut known = world.known().await;
        join(&world, &made, &[CARDS[0], "press"]).await;
        known.threads.push(thread.clone());
        fetch_all(&mut known, &world, &party).await;
        known.seen.retain(|(address, _)| address.contains(&thread));
        let events = known.seen.iter().find(|it| it.0.starts_with("host") && it.0.ends_with("/events.jsonl"));
        assert!(events.unwrap().1.contains(CARDS[0]), "the party reads the name that it chose: {events:?}");
        seen.push(known.seen);
    }
    told_apart::nothing(&seen[0], &seen[1]);
}

/// The party names members by a guess, and another party changes what is below them and moves them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_name_of_a_member_keeps_its_author_if_others_set_its_value() {
    let mut seen = Vec::new();
    for which in 0..2 {
        let blind = POLICY.replace("writes = [\"payment\", ", "writes = [\"found\", \"payment\", ");
        let world = GuessWorld::with_policy(which, &blind).await;
        let (g, party) = (&world.g, world.party().await);
        let made = world.thread(&g.host, &GuessTexts::PLAIN).await;
        let thread = made["thread"].as_str().unwrap().to_owned();
        let guess = CARDS[0];
        let named = json!({"found": {(guess): 1, "deep": {(guess): {"a": 1, "b": 2}}, "list": [{(guess): []}]}});
        let set = propose(&world, &made["thread"], &made["transition"], (&party.agent, named)).await.expect(201);
        let mut known = world.known().await;
        let mut head = set["transition"].clone();
        // The vault writes blind below the name, so it cannot have copied the name.
        for (by, patch) in [
            ((&g.planner, "planner"), json!({"found": {(guess): {"b": 1}, "deep": {(guess): {"a": 3}}}})),
            ((&world.vault, "vault"), json!({"found": {(guess): {"a": 1}}})),
            ((&g.planner, "planner"), json!({"found": {(guess): {"b": 2}, "list": ["first", {(guess): []}]}})),
        ] {
            let by: (&str, &str) = (by.0, by.1);
            head = g.propose(&made["thread"], &head, by, patch).await.expect(201)["transition"].clone();
        }
        let path = format!("/v1/transitions/{}", head.as_str().unwrap());
        let shown = known.answer(g.get(&path, &party.host).await, 200).to_string();
        assert!(shown.contains(guess) && !shown.contains("hidden"), "{shown}");
        known.threads.push(thread);
        fetch_all(&mut known, &world, &party).await;
        seen.push(known.seen);
    }
    told_apart::nothing(&seen[0], &seen[1]);
}

/// Another party copies a redacted value into a name. A party that sets the value below it is not shown the name.
#[tokio::test]
async fn a_name_with_a_redacted_value_stays_redacted_for_a_party_that_sets_the_value_below_it() {
    let world = GuessWorld::new(0).await;
    let (g, party) = (&world.g, world.party().await);
    let made = world.thread(&g.host, &GuessTexts::PLAIN).await;
    let by_others = json!({"notes": {(CARDS[0]): 1}});
    let named = propose(&world, &made["thread"], &made["transition"], (&g.planner, by_others)).await.expect(201);
    let mut head = named["transition"].clone();
    for value in [2, 3] {
        let below = json!({"notes": {(CARDS[0]): value}});
        head = propose(&world, &made["thread"], &head, (&party.agent, below)).await.expect(201)["transition"].clone();
    }
    let path = format!("/v1/transitions/{}", head.as_str().unwrap());
    let shown = g.get(&path, &party.host).await.expect(200);
    assert_eq!(shown["diff"], json!([{"pointer": "/notes", "hidden": true, "effect": "changed"}]));
}
