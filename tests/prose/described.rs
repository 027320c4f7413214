//! Texts that the program makes: the help of each command, and the description of the API.

use clap::{Arg, Command};
use serde_json::Value;

use crate::markdown;

/// Returns the help of a command and of every command below it, each with its address.
pub fn help(command: &Command, path: &str) -> Vec<(String, String)> {
    let own = [command.get_about(), command.get_long_about(), command.get_after_help(), command.get_after_long_help()];
    let mut found: Vec<(String, String)> =
        own.into_iter().flatten().map(|it| (path.to_owned(), it.to_string())).collect();
    // The long text begins with the short one.
    if command.get_about().is_some() && command.get_long_about().is_some() {
        found.remove(0);
    }
    let named = command.get_arguments().filter(|it| !it.is_global_set() || !path.contains(' '));
    found.extend(named.flat_map(|it| argument(it, path)));
    found.extend(command.get_subcommands().flat_map(|it| help(it, &format!("{path} {}", it.get_name()))));
    found
}

fn argument(it: &Arg, path: &str) -> Vec<(String, String)> {
    let address = format!("{path} {}", it.get_long().map_or_else(|| it.get_id().to_string(), |it| format!("--{it}")));
    let text = it.get_long_help().or_else(|| it.get_help()).map(ToString::to_string);
    let values = it.get_possible_values();
    let values = values.iter().filter_map(|it| it.get_help()).map(ToString::to_string);
    text.into_iter().chain(values).map(|text| (address.clone(), text)).collect()
}

/// Returns every summary and description of an OpenAPI document, each with its address.
pub fn descriptions(document: &Value, path: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    match document {
        Value::Object(members) => {
            for (name, member) in members {
                let address = format!("{path}/{name}");
                match member {
                    Value::String(text) if matches!(name.as_str(), "summary" | "description") => {
                        found.push((address, text.clone()));
                    }
                    _ if matches!(name.as_str(), "example" | "examples" | "default") => (),
                    _ => found.extend(descriptions(member, &address)),
                }
            }
        }
        Value::Array(items) => {
            found.extend(items.iter().enumerate().flat_map(|(at, it)| descriptions(it, &format!("{path}/{at}"))));
        }
        _ => (),
    }
    found
}

/// Splits texts in Markdown into passages, each with the address of its text.
pub fn passages(texts: Vec<(String, String)>) -> impl Iterator<Item = (String, String)> {
    let of = |(address, text): (String, String)| {
        markdown::passages(&text).into_iter().map(move |(_, text)| (address.clone(), text))
    };
    texts.into_iter().flat_map(of)
}
