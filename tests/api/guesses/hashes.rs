//! Hashes over texts that a reader gets masked. A reader could hash guesses and compare.

use countersign_domain::identity::account::MachineRole;
use countersign_domain::log::event::{Event, EventType};

use countersign_service::log::browse::{LogAudience, LogFilter};

use super::{GuessTexts, GuessWorld, GuessingParty, a_reviewer_writes, machines_write};
use crate::gateway::owned_token;
use crate::people::admin;

/// Everything that a party which wrote guesses fetches afterwards, as a host, as an agent and on pages.
async fn fetched(world: &GuessWorld) -> Vec<(String, String)> {
    let (g, party) = (&world.g, world.party().await);
    let host = owned_token(&g.service, "platforms-host", MachineRole::Host, &[], "platform").await;
    let mut known = world.known().await;
    machines_write(world, &party, &GuessTexts(3), &mut known).await;
    let others = GuessingParty { host, agent: g.planner.clone(), owner: party.owner.clone() };
    machines_write(world, &others, &GuessTexts::PLAIN, &mut known).await;
    a_reviewer_writes(world, &party.owner, &GuessTexts(3), &mut known).await;
    known.look_up(g).await;
    known.seen.clear();
    known.fetch_as_machine(g, MachineRole::Host, &party.host).await;
    known.fetch_as_machine(g, MachineRole::Agent, &party.agent).await;
    known.fetch_as_person(g, &party.owner).await;
    known.seen
}

async fn all_events(world: &GuessWorld) -> Vec<Event> {
    let placed = world.g.service.log.events_after(0, None, 500).await.unwrap().0;
    placed.into_iter().map(|it| it.event).collect()
}

/// Fails if one of these digests is in a response, whole or shortened.
fn assert_absent(seen: &[(String, String)], what: &str, digests: &[String]) {
    assert!(!digests.is_empty(), "{what}");
    for digest in digests {
        let start = &digest.strip_prefix("sha256:").unwrap()[..10];
        for (place, text) in seen {
            assert!(!text.contains(start), "{place} has {what} {digest}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hash_of_an_event_is_for_overseers_only() {
    let world = GuessWorld::new(0).await;
    let seen = fetched(&world).await;
    let events = all_events(&world).await;
    let hashes: Vec<String> = events.iter().map(|it| it.hash().to_string()).collect();
    assert_absent(&seen, "the hash of an event", &hashes);
    let overseer = admin(&world.g, "otto").await.record;
    let of_a_thread = events.iter().find(|it| it.previous.is_some()).unwrap();
    for (reader, hash, previous) in [
        (&overseer, Some(of_a_thread.hash()), of_a_thread.previous),
        // Alice wrote nothing that is quoted there: the role alone decides.
        (&world.g.alice, None, None),
    ] {
        let view = world.g.service.log.event_view(&of_a_thread.id, reader).await.unwrap();
        assert_eq!((view.hash, view.event.previous), (hash, previous), "{}", reader.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsalted_digests_of_texts_are_in_no_response() {
    let world = GuessWorld::new(0).await;
    let seen = fetched(&world).await;
    let events = all_events(&world).await;
    for (kind, member) in [(EventType::ThreadCreated, "episode"), (EventType::EpisodeEvent, "digest")] {
        let found = events.iter().filter(|it| it.kind == kind);
        let digests: Vec<String> = found.filter_map(|it| Some(it.data[member].as_str()?.to_owned())).collect();
        assert_absent(&seen, member, &digests);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_search_of_the_log_does_not_match_a_withheld_digest() {
    let world = GuessWorld::new(0).await;
    fetched(&world).await;
    let created = all_events(&world).await.into_iter().find(|it| it.kind == EventType::ThreadCreated).unwrap();
    let sought = LogFilter { who: created.data["episode"].as_str().map(str::to_owned), ..LogFilter::default() };
    let overseer = admin(&world.g, "otto").await.record;
    for (reader, found) in [(&overseer, true), (&world.g.alice, false)] {
        let page = world.g.service.log.log_page(&sought, LogAudience::of(reader.role), None, 25).await.unwrap();
        assert_eq!(!page.lines.is_empty(), found, "{}", reader.name);
    }
}
