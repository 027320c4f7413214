//! Adds example requests and responses to the OpenAPI document. Most are recorded in tests, with names and secrets
//! replaced. Some rare failures and an MCP message are written by hand. A test checks each example against its schema.

use serde_json::Value;

const EXAMPLES: &str = include_str!("examples.json");

/// Adds each example. A test finds examples of calls or statuses that do not exist.
pub fn put(told: &mut Value) {
    let examples: Value = serde_json::from_str(EXAMPLES).expect("the examples are JSON, as a test has seen");
    for (call, example) in examples["calls"].as_object().into_iter().flatten() {
        let (method, path) = call.split_once(' ').unwrap_or_default();
        let call = &mut told["paths"][path][method.to_lowercase()];
        if let Some(request) = example.get("request") {
            call["requestBody"]["content"]["application/json"]["example"] = request.clone();
        }
        for (status, answer) in example["responses"].as_object().into_iter().flatten() {
            call["responses"][status]["content"]["application/json"]["example"] = answer.clone();
        }
    }
    for (name, problem) in examples["problems"].as_object().into_iter().flatten() {
        let content = &mut told["components"]["responses"][name]["content"];
        content["application/problem+json"]["example"] = problem.clone();
    }
}
