//! The page of the configuration, from the compiled-in default file and what its reader accepts.

use std::ffi::OsString;
use std::fmt::Write as _;

use countersign::config::{Config, ConfigCode, DEFAULTS, Flags};
use toml::Value;

use super::sentence;

const INTRODUCTION: &str = "\
# Configuration

This page lists every configuration key with its type, default and environment variable.

## Layers

There are three layers. A later layer overrides an earlier one.

1. A TOML file: `--config FILE`, or the variable `COUNTERSIGN_CONFIG`.
2. Environment variables: `limits.depth` is `COUNTERSIGN_LIMITS_DEPTH`. Commas separate the items of a list.
3. Flags: `--listen`, `--data` and `--database`.

```toml
# gateway.toml
listen = \"127.0.0.1:8480\"
public_url = \"https://gate.example\"
trusted_proxies = [\"127.0.0.1\"]

[limits]
depth = 32
```

The file `config.default.toml` contains every key with its default, and is compiled into the binary. An empty string means
that the key is not set.

## Rejected keys and variables

The gateway refuses an unknown key or an unknown `COUNTERSIGN_` variable, and names its location. The error ends with a stable
code.

| Code | Meaning |
|---|---|
| `config_unreadable` | The file, or a file that a key names, cannot be read. |
| `config_syntax` | The file is not valid TOML. |
| `config_unknown_key` | The file contains an unknown key. |
| `config_unknown_variable` | The environment contains an unknown `COUNTERSIGN_` variable. |
| `config_wrong_type` | A value has the wrong type. |
| `config_bad_value` | A value is out of range or invalid. |
| `config_plain_http` | Passwords or tokens would cross a network unencrypted. |

**Kubernetes.** The gateway ignores the variables that Kubernetes sets for services whose names begin with `countersign`, like
`COUNTERSIGN_POSTGRES_SERVICE_HOST` and `COUNTERSIGN_PORT=tcp://…`.

**Variables of clients.** These variables are no keys: `COUNTERSIGN_URL` and `COUNTERSIGN_TOKEN` (`countersign mcp` and the
examples), and `COUNTERSIGN_ENVELOPE_SECRET` (`countersign envelope verify`). Every command that reads the configuration refuses
them with `config_unknown_variable`. Set them only for the one command that needs them, or use a file (`--token-file`,
`--secret-file`).
";

/// A key: its comment, its default, and its name with the section.
struct Key {
    name: String,
    about: String,
    default: Value,
}

/// A section of the file: its name, empty for the top, its comment and its keys.
#[derive(Default)]
struct Section {
    name: String,
    about: String,
    keys: Vec<Key>,
}

pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for section in sections() {
        let (heading, about) = match section.name.as_str() {
            "" => ("General".to_owned(), "Keys at the top of the file.".to_owned()),
            name => (format!("`[{name}]`"), section.about),
        };
        write!(page, "\n## {heading}\n\n{about}\n").unwrap();
        for key in section.keys {
            let (kind, default) = (accepted(&key), written(&key.default));
            write!(page, "\n### `{}`\n\n{}\n\n", key.name, sentence(&key.about)).unwrap();
            write!(page, "- Type: {kind}\n- Default: {default}\n- Variable: `{}`\n", variable(&key.name)).unwrap();
        }
    }
    page
}

/// Reads the default file line by line: a comment belongs to the key or the section below it.
fn sections() -> Vec<Section> {
    let mut sections = vec![Section::default()];
    let mut about: Vec<&str> = Vec::new();
    for line in DEFAULTS.lines() {
        if let Some(text) = line.strip_prefix('#') {
            about.push(text.trim());
        } else if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            let section = Section { name: name.to_owned(), about: about.join(" "), keys: Vec::new() };
            assert!(!section.about.is_empty(), "[{name}] has no comment");
            sections.push(section);
            about.clear();
        } else if let Some((name, default)) = line.split_once(" = ") {
            let section = sections.last_mut().unwrap();
            let dot = if section.name.is_empty() { "" } else { "." };
            let name = format!("{}{dot}{name}", section.name);
            assert!(!about.is_empty(), "{name} has no comment");
            let default = format!("it = {default}").parse::<toml::Table>().unwrap()["it"].clone();
            section.keys.push(Key { name, about: about.join(" "), default });
            about.clear();
        } else {
            about.clear();
        }
    }
    sections
}

fn variable(key: &str) -> String {
    format!("COUNTERSIGN_{}", key.replace('.', "_").to_uppercase())
}

fn written(default: &Value) -> String {
    match default {
        Value::String(text) if text.is_empty() => "not set".to_owned(),
        default => format!("`{default}`"),
    }
}

/// The type of a key, with what the reader of the configuration accepts: it names that when it refuses a value.
fn accepted(key: &Key) -> String {
    let (kind, wrong) = match &key.default {
        Value::String(_) => ("string", " \u{1}"),
        Value::Integer(_) => ("integer", "18446744073709551615"),
        Value::Boolean(_) => return "boolean".to_owned(),
        Value::Array(_) => ("list of strings", "\u{1} \u{1}"),
        other => panic!("{} has a default of an unknown type: {other}", key.name),
    };
    let variables = [(OsString::from(variable(&key.name)), OsString::from(wrong))];
    match Config::load(&Flags::default(), variables) {
        Err(refused) if refused.code == ConfigCode::BadValue && refused.key == key.name => {
            let expected = refused.problem.strip_prefix("it must be ").unwrap();
            match expected.strip_prefix("a whole number ") {
                Some(bounds) => format!("integer {bounds}"),
                None if kind == "list of strings" => format!("{kind}. Each item: {expected}"),
                None => format!("{kind}: {expected}"),
            }
        }
        _ => kind.to_owned(),
    }
}
