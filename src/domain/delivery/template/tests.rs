use serde_json::json;

use super::*;

fn decided() -> Decided {
    Decided {
        event: "e-1".try_into().unwrap(),
        flow: "payments".to_owned(),
        review: "r-1".to_owned(),
        thread: Some("order-17".to_owned()),
        interrupt: Some("i-1".to_owned()),
        digest: "d".repeat(64),
        approved: false,
        decision: "denied".to_owned(),
        answer: json!({"approved": false}),
    }
}

fn template(body: Value) -> Template {
    Template { needs: needs_of_body(&body).unwrap(), body, look: None }
}

fn look() -> LookTemplate {
    // What is hidden is of no matter here.
    let url = serde_json::from_value(json!("AAAA")).unwrap();
    LookTemplate {
        url,
        origin: "https://a.example".to_owned(),
        needs: BTreeSet::new(),
        pointer: Pointer::try_from("/task/status".to_owned()).unwrap(),
        waiting: json!("waiting"),
    }
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[test]
fn each_gap_takes_a_whole_value() {
    let body = json!({"all": ["{answer}", "{approved}", "{decision}", "{digest}", "{event}", "{flow}", "{interrupt}",
        "{review}", "{thread}"], "resume": {"{interrupt}": {"n": 1, "t": "plain {} { x }"}}});
    let filled = template(body).filled(&decided()).unwrap();
    assert_eq!(
        filled,
        json!({"all": [{"approved": false}, false, "denied", "d".repeat(64), "e-1", "payments", "i-1", "r-1", "order-17"],
            "resume": {"i-1": {"n": 1, "t": "plain {} { x }"}}})
    );
    let none = Decided { thread: None, interrupt: None, ..decided() };
    assert_eq!(template(json!(["{thread}"])).filled(&none), Some(json!([null])));
    let keyed = template(json!({"{interrupt}": 1}));
    assert!(keyed.reaches(&decided()) && !keyed.reaches(&none));
}

#[test]
fn what_is_put_in_breaks_out_of_nothing() {
    for text in
        ["\"}, \"approved\": true, {\"", "{digest}", "a/../../admin", "x?y=1#z", "%2e%2e", "ü\u{202e}\n", "{\"a\":1}"]
    {
        let decided = Decided { thread: Some(text.to_owned()), ..decided() };
        let body = template(json!({"t": "{thread}", "k": {"{thread}": 1}})).filled(&decided).unwrap();
        assert_eq!(body, json!({"t": text, "k": {text: 1}}));
        let filled = filled_address(&url("https://a.example/threads/{thread}/resume?key=1"), &decided).unwrap();
        assert_eq!((filled.host_str(), filled.query(), filled.fragment()), (Some("a.example"), Some("key=1"), None));
        let parts: Vec<&str> = filled.path_segments().unwrap().collect();
        assert_eq!((parts.len(), parts[0], parts[2]), (3, "threads", "resume"), "{filled}");
        assert!(parts[1].bytes().all(|it| it.is_ascii_alphanumeric() || b"%-._~".contains(&it)), "{filled}");
    }
    for text in ["", ".", ".."] {
        let decided = Decided { thread: Some(text.to_owned()), ..decided() };
        assert_eq!(filled_address(&url("https://a.example/threads/{thread}/resume"), &decided), None, "{text:?}");
    }
}

#[test]
fn a_name_that_somebody_chose_takes_no_other_members_place() {
    let body = template(json!({"approved": "{approved}", "{interrupt}": true}));
    assert!(body.filled(&decided()).is_some());
    let forged = Decided { interrupt: Some("approved".to_owned()), ..decided() };
    assert_eq!(body.filled(&forged), None);
}

#[test]
fn what_is_no_placeholder_is_refused_by_name() {
    for (body, why) in [
        (json!({"a": "{secret}"}), NoTemplate::Unknown("secret".to_owned())),
        (json!([{"b": ["{Digest}"]}]), NoTemplate::Unknown("Digest".to_owned())),
        (json!({"{url}": 1}), NoTemplate::Unknown("url".to_owned())),
        (json!("it is {decision}"), NoTemplate::NotAlone("decision".to_owned())),
        (json!("{ }{digest}"), NoTemplate::NotAlone("digest".to_owned())),
        (json!({"{answer}": 1}), NoTemplate::NoText("answer")),
        (json!("x".repeat(TEMPLATE_BYTES_MAX)), NoTemplate::TooLarge),
    ] {
        assert_eq!(needs_of_body(&body), Err(why), "{body}");
    }
    assert!(
        NoTemplate::Unknown("secret".to_owned())
            .to_string()
            .starts_with("`{secret}` is no placeholder; there are answer, ")
    );
    for (address, why) in [
        ("https://a.example/{secret}", NoTemplate::Unknown("secret".to_owned())),
        ("https://a.example/%7bsecret%7d", NoTemplate::Unknown("secret".to_owned())),
        ("https://a.example/x-{thread}", NoTemplate::NotAlone("thread".to_owned())),
        ("https://a.example/{thread}{review}", NoTemplate::NotAlone("thread".to_owned())),
        ("https://a.example/{approved}", NoTemplate::NoText("approved")),
        ("https://a.example/x?t={thread}", NoTemplate::NotInPath),
        ("https://a.example/x?%7Bthread%7D", NoTemplate::NotInPath),
        ("https://{thread}.example/x", NoTemplate::NotInPath),
    ] {
        assert_eq!(needs_of_address(&url(address)), Err(why), "{address}");
    }
    let needs = needs_of_address(&url("https://a.example/{thread}/x%20y/{review}?k=1")).unwrap();
    assert_eq!(needs, BTreeSet::from([Placeholder::Thread, Placeholder::Review]));
    assert!(Url::parse("https://a.example:{thread}/").is_err());
}

#[test]
fn a_look_says_whether_it_is_waited_for_only_by_what_stands_at_its_place() {
    let look = look();
    for (answer, seen) in [
        ("{\"task\":{\"status\":\"waiting\"}}", Ok(())),
        ("{\"task\":{\"status\":\"done\"}}", Err(Saw::NotWaiting)),
        ("{\"task\":{\"status\":[\"waiting\"]}}", Err(Saw::NotWaiting)),
        ("{\"task\":{}}", Err(Saw::Unclear)),
        ("waiting", Err(Saw::Unclear)),
        ("", Err(Saw::Unclear)),
    ] {
        assert_eq!(look.seen(answer.as_bytes()), seen, "{answer}");
    }
}

#[test]
fn a_look_goes_to_where_the_request_goes_and_nowhere_else() {
    for (address, goes) in [
        ("https://a.example/x/{thread}", true),
        ("https://a.example:8443/x/{thread}", false),
        ("http://a.example/x/{thread}", false),
        ("https://b.example/x/{thread}", false),
    ] {
        let template = Template { look: Some(look()), ..template(json!({})) };
        assert_eq!(template.at(&url(address)).is_ok(), goes, "{address}");
    }
    let moved = template(json!({"{review}": 1})).at(&url("https://b.example/{thread}")).unwrap();
    assert_eq!(moved.needs, BTreeSet::from([Placeholder::Review, Placeholder::Thread]));
}

#[test]
fn the_parts_of_an_address_are_known_without_its_gaps() {
    let address = "/t0ken/%7Bthread%7D/go/%7Breview%7D?key=x";
    assert_eq!(plain_parts(address).collect::<Vec<_>>(), ["/t0ken/", "/go/", "?key=x"]);
    assert_eq!(plain_parts("/t0ken").collect::<Vec<_>>(), ["/t0ken"]);
}
