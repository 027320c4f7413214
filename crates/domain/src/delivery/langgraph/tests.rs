use serde_json::{Value, json};

use super::*;

const THREAD: &str = "01a200c1-1e27-7094-ae0a-fd27b59ac5f3";
const FIRST: &str = "ec770f986c3d3a5d53118813570a243e";
const SECOND: &str = "b8445202d41afef489c6c9740c45a62d";

fn digest(of: &str) -> String {
    of.repeat(64)
}

fn decided() -> DecisionPayload {
    DecisionPayload {
        event: "e-1".try_into().unwrap(),
        flow: "payments".to_owned(),
        review: "r-1".to_owned(),
        thread: Some(THREAD.to_owned()),
        interrupt: Some(FIRST.to_owned()),
        digest: digest("d"),
        approved: true,
        decision: "approved".to_owned(),
        answer: json!({"approved": true, "transition_digest": digest("d")}),
    }
}

/// A thread as the server returns it, without the values of its state.
fn thread(status: &str, waiting: &[(&str, Value)]) -> Value {
    let interrupts: Vec<Value> = waiting.iter().map(|(id, value)| json!({"id": id, "value": value})).collect();
    let tasks =
        if interrupts.is_empty() { json!({}) } else { json!({"338c5207-42e5-e2d4-bf58-10b7659e95f5": interrupts}) };
    json!({"thread_id": THREAD, "status": status, "values": {"x": 1}, "error": null, "interrupts": tasks})
}

fn asks(of: &str) -> Value {
    json!({"kind": "state_transition_review", "transition_digest": digest(of)})
}

fn seen(thread: &Value, decided: &DecisionPayload) -> Result<Vec<String>, PreflightResult> {
    waiting(thread.to_string().as_bytes(), decided)
}

#[test]
fn interrupt_is_resumed_only_while_it_waits_for_this_digest() {
    let by_name = decided();
    let by_digest = DecisionPayload { interrupt: None, ..decided() };
    let ours = Ok(vec![FIRST.to_owned()]);
    let (another, gone) = (Err(PreflightResult::Another), Err(PreflightResult::NotWaiting));
    for (what, thread, name, digest) in [
        ("it waits", thread("interrupted", &[(FIRST, asks("d"))]), ours.clone(), ours.clone()),
        ("beside another", thread("interrupted", &[(SECOND, asks("e")), (FIRST, asks("d"))]), ours.clone(), ours),
        ("for the next step", thread("interrupted", &[(FIRST, asks("e"))]), another, gone.clone()),
        ("another waits", thread("interrupted", &[(SECOND, asks("e"))]), gone.clone(), gone.clone()),
        ("nothing waits", thread("idle", &[]), gone.clone(), gone.clone()),
        ("it failed", thread("error", &[(FIRST, asks("d"))]), gone.clone(), gone.clone()),
        (
            "a run is under way",
            thread("busy", &[(FIRST, asks("d"))]),
            Err(PreflightResult::Busy),
            Err(PreflightResult::Busy),
        ),
        ("no digest", thread("interrupted", &[(FIRST, json!({"x": 1}))]), Err(PreflightResult::NoDigest), gone.clone()),
        ("no object", thread("interrupted", &[(FIRST, json!("go on?"))]), Err(PreflightResult::NoDigest), gone),
        (
            "no such state",
            thread("asleep", &[(FIRST, asks("d"))]),
            Err(PreflightResult::Unclear),
            Err(PreflightResult::Unclear),
        ),
    ] {
        assert_eq!(seen(&thread, &by_name), name, "{what}");
        assert_eq!(seen(&thread, &by_digest), digest, "{what}");
    }
    // The host application did not post this digest under the other name.
    assert_eq!(seen(&thread("interrupted", &[(SECOND, asks("d"))]), &by_name), Err(PreflightResult::NotWaiting));
    assert_eq!(seen(&thread("interrupted", &[(SECOND, asks("d"))]), &by_digest), Ok(vec![SECOND.to_owned()]));
}

#[test]
fn every_branch_that_waits_for_the_digest_is_resumed() {
    let both = thread("interrupted", &[(FIRST, asks("d")), (SECOND, asks("d"))]);
    let names = seen(&both, &DecisionPayload { interrupt: None, ..decided() }).unwrap();
    let run = run("agent", &names, &decided());
    assert_eq!(run["command"]["resume"], json!({FIRST: decided().answer, SECOND: decided().answer}));
    assert_eq!((&run["assistant_id"], &run["multitask_strategy"]), (&json!("agent"), &json!("reject")));
}

#[test]
fn unexpected_response_resumes_nothing() {
    let with = |name: &str, value: Value| {
        let mut odd = thread("interrupted", &[(FIRST, asks("d"))]);
        odd[name] = value;
        odd.to_string()
    };
    let twice = thread("interrupted", &[(FIRST, asks("d"))])
        .to_string()
        .replace("\"status\"", "\"status\":\"idle\",\"status\"");
    let many: Vec<Value> =
        (0..=WAITING_MAX).map(|it| json!({"id": format!("{it:032x}"), "value": asks("d")})).collect();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for odd in [
        String::new(),
        "ok".to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
        "<html></html>".to_owned(),
        with("thread_id", json!("01a200bd-773d-77a9-84a1-0b6417b2a9a2")),
        with("thread_id", json!(null)),
        with("status", json!(["interrupted"])),
        with("interrupts", json!([{"id": FIRST, "value": asks("d")}])),
        with("interrupts", json!({"task": [{"id": 7, "value": asks("d")}]})),
        with("interrupts", json!({"task": many})),
        with("interrupts", json!({"task": [{"id": FIRST, "value": 1}]})).replace(":1}", &format!(":{deep}}}")),
        twice,
    ] {
        let by_digest = DecisionPayload { interrupt: None, ..decided() };
        assert_eq!(
            waiting(odd.as_bytes(), &by_digest),
            Err(PreflightResult::Unclear),
            "{}",
            odd.get(..80).unwrap_or(&odd)
        );
    }
}

/// The server takes a key that is no id as the answer to every waiting interrupt.
#[test]
fn key_without_the_form_of_an_interrupt_id_is_never_sent() {
    for name in ["approved", "", "ec770f986c3d3a5d53118813570a243", "ec770f986c3d3a5d53118813570a243x"] {
        let odd = thread("interrupted", &[(name, asks("d"))]);
        for interrupt in [None, Some(name.to_owned())] {
            assert_eq!(
                seen(&odd, &DecisionPayload { interrupt, ..decided() }),
                Err(PreflightResult::Unclear),
                "{name}"
            );
        }
    }
}

#[test]
fn only_uuid_threads_are_requested() {
    for (name, has) in [
        (Some(THREAD), true),
        (Some("order-17"), false),
        (Some(".."), false),
        (Some("01a200c11e277094ae0afd27b59ac5f3"), false),
        (Some("01a200c1-1e27-7094-ae0a-fd27b59ac5f/"), false),
        (None, false),
    ] {
        let decided = DecisionPayload { thread: name.map(str::to_owned), ..decided() };
        assert_eq!(thread_of(&decided).is_some(), has, "{name:?}");
    }
    let base = |text: &str| Url::parse(text).unwrap();
    for (at, url) in [
        ("http://a/", "http://a/threads/x"),
        ("http://a/b", "http://a/b/threads/x"),
        ("http://a/b/", "http://a/b/threads/x"),
    ] {
        assert_eq!(below(&base(at), &["threads", "x"]).unwrap().as_str(), url);
    }
}

#[test]
fn endpoint_test_detects_a_missing_graph() {
    for (answer, saw) in [
        ("[{\"assistant_id\":\"fe09\",\"graph_id\":\"agent\"", PreflightResult::There),
        (" [ ] ", PreflightResult::NoAssistant),
        ("{\"ok\":true}", PreflightResult::Unclear),
        ("so?", PreflightResult::Unclear),
    ] {
        assert_eq!(found(answer.as_bytes()), saw, "{answer}");
    }
    assert_eq!(search("agent")["graph_id"], "agent");
    assert_eq!(search(THREAD), json!({"limit": 1}));
}
