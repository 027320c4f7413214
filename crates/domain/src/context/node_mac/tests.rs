use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn secrets(now: &str) -> NodeSecrets {
    let (flow, node) = (FlowId::try_from("briefing").unwrap(), NodeId::try_from("lead").unwrap());
    NodeSecrets::of(&RowKey::from_bytes(&[7; 32]), &flow, &node, &Rotation::default(), at(now))
}

fn epochs(secrets: &NodeSecrets) -> Vec<String> {
    secrets.0.iter().map(|it| it.epoch.0.to_string()).collect()
}

#[test]
fn previous_secret_is_valid_until_the_overlap_ends() {
    let (yesterday, today) = ("2026-11-21T00:00:00.000Z", "2026-11-22T00:00:00.000Z");
    for (now, good) in [
        ("2026-11-21T23:59:59.999Z", &[yesterday][..]),
        ("2026-11-22T00:00:00.000Z", &[today, yesterday]),
        ("2026-11-22T00:59:59.999Z", &[today, yesterday]),
        ("2026-11-22T01:00:00.000Z", &[today]),
        ("2026-11-22T23:59:59.999Z", &[today]),
    ] {
        assert_eq!(epochs(&secrets(now)), good, "{now}");
    }
}

#[test]
fn stored_secrets_expire_at_their_own_time() {
    let made = secrets("2026-11-22T00:30:00.000Z");
    let (flow, node) = (FlowId::try_from("briefing").unwrap(), NodeId::try_from("lead").unwrap());
    let rotates_at = at("2026-11-23T00:00:00.000Z");
    let kept = NodeSecretsView { flow, node, alg: MacAlg::Hs256, rotates_at, secrets: made.shown() };
    for (now, good) in [
        ("2026-11-22T00:59:59.999Z", &["2026-11-22T00:00:00.000Z", "2026-11-21T00:00:00.000Z"][..]),
        ("2026-11-22T01:00:00.000Z", &["2026-11-22T00:00:00.000Z"]),
        ("2026-11-23T01:00:00.000Z", &[]),
    ] {
        assert_eq!(epochs(&NodeSecrets::read(&kept, at(now)).unwrap()), good, "{now}");
    }
}

#[test]
fn malformed_secret_is_not_read() {
    for spoiled in ["", "envsec_", "envsec_AAAA", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        assert!(NodeSecret::read(spoiled).is_none(), "{spoiled}");
    }
    assert!(NodeSecret::read("envsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").is_some());
}

#[test]
fn secrets_do_not_print() {
    let made = secrets("2026-11-22T00:30:00.000Z");
    let shown = made.shown();
    let text = shown[0].secret.expose().trim_start_matches(SECRET_PREFIX).to_owned();
    let (flow, node) = (FlowId::try_from("briefing").unwrap(), NodeId::try_from("lead").unwrap());
    let rotates_at = at("2026-11-23T00:00:00.000Z");
    let printed =
        format!("{made:?} {:?}", NodeSecretsView { flow, node, alg: MacAlg::Hs256, rotates_at, secrets: shown });
    assert!(printed.contains("[redacted]") && !printed.contains(&text), "{printed}");
}
