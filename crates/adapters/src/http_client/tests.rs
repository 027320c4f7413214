mod peer;
mod sending;
mod spelling;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::ssrf_guard::{DnsLookup, DnsResolver};
use super::*;

/// A limit that every local request stays below.
const AMPLE: Duration = Duration::from_secs(60);

fn networks(texts: &[&str]) -> Vec<Network> {
    texts.iter().map(|it| Network::parse(it).unwrap()).collect()
}

fn settings(allowed: &[&str]) -> HttpClientSettings {
    HttpClientSettings { allowed: networks(allowed), plain_http: false, timeout: AMPLE }
}

fn outgoing(settings: HttpClientSettings) -> HttpClient {
    outgoing_by(names(&[]).0, settings)
}

fn outgoing_by(look_up: DnsResolver, settings: HttpClientSettings) -> HttpClient {
    HttpClient::between(ClientOverrides { look_up, authorities: Vec::new(), idle_max: AMPLE }, settings).unwrap()
}

/// Returns a resolver that returns these addresses one after the other and then repeats the last, and its number of
/// lookups.
fn names(turns: &[&[&str]]) -> (DnsResolver, Arc<AtomicUsize>) {
    let turns: Vec<Vec<IpAddr>> =
        turns.iter().map(|turn| turn.iter().map(|it| it.parse().unwrap()).collect()).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let look_up = move |_| -> DnsLookup {
        let turn = counted.fetch_add(1, Ordering::SeqCst);
        let found = turns.get(turn).or_else(|| turns.last()).cloned();
        Box::pin(std::future::ready(found.ok_or_else(|| io::Error::other("no such name"))))
    };
    (Arc::new(look_up), asked)
}

fn parcel(url: &str) -> OutboundRequest {
    OutboundRequest { url: Url::parse(url).unwrap(), headers: Vec::new(), body: b"{}".to_vec() }
}

fn why(outcome: HttpOutcome) -> FailureCode {
    match outcome {
        HttpOutcome::Failed(failure) => failure.why,
        HttpOutcome::Answered(answer) => panic!("answered {}", answer.status),
    }
}

fn answered(outcome: HttpOutcome) -> BoundedResponse {
    match outcome {
        HttpOutcome::Answered(answer) => answer,
        HttpOutcome::Failed(failure) => panic!("{}", failure.why),
    }
}
