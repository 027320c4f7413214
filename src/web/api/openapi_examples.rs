//! What calls and their answers look like, for the description: what a gateway was sent and answered in tests, with
//! names of machines and secrets replaced; a few failures that are hard to bring about, and a message of the Model Context
//! Protocol, are written by hand. A test holds every one against the description that it stands in.

use serde_json::Value;

const EXAMPLES: &str = include_str!("examples.json");

/// Puts each where it belongs. One for a call or a status that is not described is a mistake that a test finds.
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
