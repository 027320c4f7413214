//! Tests that a delivery is in the trace of the request that caused its event.

use serde_json::{Value, json};

use super::receiver::{BROKEN, FINE, WebhookReceiver};
use super::scene::WebhookScenario;

on_both! {
    delivery_and_its_retry_are_in_the_trace_of_the_request,
    tool_call_of_an_agent_is_in_the_trace_of_its_message,
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

async fn thread_traced(s: &WebhookScenario, traces: &[&str]) {
    let state = json!({"requested_action": "none", "target_user_id": 17, "payment": {"amount": 10, "card": "4111111111111111"}});
    let body = json!({"flow": "payments", "state": state});
    let request = reqwest::Client::new().post(format!("{}/v1/threads", s.g.url)).bearer_auth(&s.g.host).json(&body);
    let request = traces.iter().fold(request, |request, it| request.header("traceparent", *it));
    assert_eq!(request.send().await.unwrap().status(), 201);
}

async fn delivery_and_its_retry_are_in_the_trace_of_the_request(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    receiver.now(BROKEN);
    let endpoint = s.endpoint(&receiver, &["thread.created"]).await;
    thread_traced(&s, &[TRACE]).await;
    s.send().await;
    receiver.now(FINE);
    s.g.pass(std::time::Duration::from_secs(3600));
    s.send().await;
    for traces in [&[][..], &[TRACE, TRACE], &["00-no-trace-01"]] {
        thread_traced(&s, traces).await;
    }
    s.send().await;
    let got = receiver.got();
    let traces: Vec<Option<&str>> = got.iter().map(|it| it.headers.get("traceparent").map(String::as_str)).collect();
    assert_eq!(traces, [Some(TRACE), Some(TRACE), None, None, None]);
    assert!(got.iter().all(|it| !it.body.contains("4bf92f35")), "it is no part of what is signed");
    let own: Value = json!({"headers": {"Traceparent": TRACE}});
    let path = super::scene::path(&endpoint, "");
    let refused = s.g.send(reqwest::Method::PATCH, &path, &s.g.admin, Some(own)).await;
    refused.expect_status(400);
    s.is_sound().await;
}

async fn tool_call_of_an_agent_is_in_the_trace_of_its_message(s: WebhookScenario) {
    let receiver = WebhookReceiver::start().await;
    s.endpoint(&receiver, &["transition.committed"]).await;
    let thread = s.g.thread().await;
    let arguments = json!({
        "thread": thread["thread"], "node": "planner", "parent": thread["transition"],
        "patch": {"requested_action": "update_email"},
    });
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "propose", "arguments": arguments}});
    let request = reqwest::Client::new().post(format!("{}/mcp", s.g.url)).bearer_auth(&s.g.planner).json(&call);
    let told: Value = request.header("traceparent", TRACE).send().await.unwrap().json().await.unwrap();
    assert_eq!(told["result"]["structuredContent"]["outcome"], "committed", "{told:#}");
    s.send().await;
    let got = receiver.got();
    assert_eq!(got.last().unwrap().headers.get("traceparent").map(String::as_str), Some(TRACE));
    s.is_sound().await;
}
