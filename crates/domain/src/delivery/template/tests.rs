use serde_json::json;

use super::*;

fn decided() -> DecisionPayload {
    DecisionPayload {
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

fn look() -> PreflightTemplate {
    // The encrypted URL does not matter in these tests.
    let url = serde_json::from_value(json!("AAAA")).unwrap();
    PreflightTemplate {
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
fn each_placeholder_takes_a_whole_value() {
    let body = json!({"all": ["{answer}", "{approved}", "{decision}", "{digest}", "{event}", "{flow}", "{interrupt}",
        "{review}", "{thread}"], "resume": {"{interrupt}": {"n": 1, "t": "plain {} { x }"}}});
    let filled = template(body).filled(&decided()).unwrap();
    assert_eq!(
        filled,
        json!({"all": [{"approved": false}, false, "denied", "d".repeat(64), "e-1", "payments", "i-1", "r-1", "order-17"],
            "resume": {"i-1": {"n": 1, "t": "plain {} { x }"}}})
    );
    let none = DecisionPayload { thread: None, interrupt: None, ..decided() };
    assert_eq!(template(json!(["{thread}"])).filled(&none), Some(json!([null])));
    let keyed = template(json!({"{interrupt}": 1}));
    assert!(keyed.reaches(&decided()) && !keyed.reaches(&none));
}

#[test]
fn inserted_value_cannot_leave_its_placeholder() {
    for text in
        ["\"}, \"approved\": true, {\"", "{digest}", "a/../../admin", "x?y=1#z", "%2e%2e", "ü\u{202e}\n", "{\"a\":1}"]
    {
        let decided = DecisionPayload { thread: Some(text.to_owned()), ..decided() };
        let body = template(json!({"t": "{thread}", "k": {"{thread}": 1}})).filled(&decided).unwrap();
        assert_eq!(body, json!({"t": text, "k": {text: 1}}));
        let filled = filled_address(&url("https://a.example/threads/{thread}/resume?key=1"), &decided).unwrap();
        assert_eq!((filled.host_str(), filled.query(), filled.fragment()), (Some("a.example"), Some("key=1"), None));
        let parts: Vec<&str> = filled.path_segments().unwrap().collect();
        assert_eq!((parts.len(), parts[0], parts[2]), (3, "threads", "resume"), "{filled}");
        assert!(parts[1].bytes().all(|it| it.is_ascii_alphanumeric() || b"%-._~".contains(&it)), "{filled}");
    }
    for text in ["", ".", ".."] {
        let decided = DecisionPayload { thread: Some(text.to_owned()), ..decided() };
        assert_eq!(filled_address(&url("https://a.example/threads/{thread}/resume"), &decided), None, "{text:?}");
    }
}

#[test]
fn inserted_name_cannot_replace_another_member() {
    let body = template(json!({"approved": "{approved}", "{interrupt}": true}));
    assert!(body.filled(&decided()).is_some());
    let forged = DecisionPayload { interrupt: Some("approved".to_owned()), ..decided() };
    assert_eq!(body.filled(&forged), None);
}

#[test]
fn unknown_placeholder_is_refused_by_name() {
    for (body, why) in [
        (json!({"a": "{secret}"}), TemplateError::Unknown("secret".to_owned())),
        (json!([{"b": ["{Digest}"]}]), TemplateError::Unknown("Digest".to_owned())),
        (json!({"{url}": 1}), TemplateError::Unknown("url".to_owned())),
        (json!("it is {decision}"), TemplateError::NotAlone("decision".to_owned())),
        (json!("{ }{digest}"), TemplateError::NotAlone("digest".to_owned())),
        (json!({"{answer}": 1}), TemplateError::NoText("answer")),
        (json!("x".repeat(TEMPLATE_BYTES_MAX)), TemplateError::TooLarge),
    ] {
        assert_eq!(needs_of_body(&body), Err(why), "{body}");
    }
    assert!(
        TemplateError::Unknown("secret".to_owned())
            .to_string()
            .starts_with("unknown placeholder `{secret}`: use one of answer, ")
    );
    for (address, why) in [
        ("https://a.example/{secret}", TemplateError::Unknown("secret".to_owned())),
        ("https://a.example/%7bsecret%7d", TemplateError::Unknown("secret".to_owned())),
        ("https://a.example/x-{thread}", TemplateError::NotAlone("thread".to_owned())),
        ("https://a.example/{thread}{review}", TemplateError::NotAlone("thread".to_owned())),
        ("https://a.example/{approved}", TemplateError::NoText("approved")),
        ("https://a.example/x?t={thread}", TemplateError::NotInPath),
        ("https://a.example/x?%7Bthread%7D", TemplateError::NotInPath),
        ("https://{thread}.example/x", TemplateError::NotInPath),
    ] {
        assert_eq!(needs_of_address(&url(address)), Err(why), "{address}");
    }
    let needs = needs_of_address(&url("https://a.example/{thread}/x%20y/{review}?k=1")).unwrap();
    assert_eq!(needs, BTreeSet::from([Placeholder::Thread, Placeholder::Review]));
    assert!(Url::parse("https://a.example:{thread}/").is_err());
}

#[test]
fn preflight_compares_only_the_value_at_its_pointer() {
    let look = look();
    for (answer, seen) in [
        ("{\"task\":{\"status\":\"waiting\"}}", Ok(())),
        ("{\"task\":{\"status\":\"done\"}}", Err(PreflightResult::NotWaiting)),
        ("{\"task\":{\"status\":[\"waiting\"]}}", Err(PreflightResult::NotWaiting)),
        ("{\"task\":{}}", Err(PreflightResult::Unclear)),
        ("waiting", Err(PreflightResult::Unclear)),
        ("", Err(PreflightResult::Unclear)),
    ] {
        assert_eq!(look.seen(answer.as_bytes()), seen, "{answer}");
    }
}

#[test]
fn preflight_uses_only_the_origin_of_the_request() {
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
fn plain_parts_of_a_url_exclude_placeholders() {
    let address = "/t0ken/%7Bthread%7D/go/%7Breview%7D?key=x";
    assert_eq!(plain_parts(address).collect::<Vec<_>>(), ["/t0ken/", "/go/", "?key=x"]);
    assert_eq!(plain_parts("/t0ken").collect::<Vec<_>>(), ["/t0ken"]);
}
