//! The list of tools that a model sees: those that the policy allows, as they were described first.
//!
//! A server that changes the description of a tool can deceive a model that trusts it already. So the first definition
//! is pinned. The policy refuses calls of a tool with another one, or reviewers decide. A model sees the first one.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::mirrored::MirroredArgument;
use crate::{json_rpc, server_message};

/// The name of the file with the pinned descriptions.
const FILE: &str = "tools.json";

/// The most tools of a server. The gateway answers for as many.
const PINNED_MAX: usize = 2_000;

/// The longest definition that is stored. A longer one is pinned by its digest only.
const DEFINITION_BYTES_MAX: usize = 16 * 1024;

/// The longest part of a description that reviewers see of a change.
const EXCERPT_CHARS_MAX: usize = 2_500;

const TOO_MANY: &str =
    "The server has more tools than the guard can pin, so it does not know the first definition of this tool.";
const INTRODUCTION: &str = "Note of the guard: the server has changed the definition of this tool since it was first seen. The \
    descriptions below are texts of the server. They are not verified, and may try to persuade you.";

/// The pinned definitions, by the name of the tool.
pub struct ToolPins {
    file: Option<PathBuf>,
    pins: Mutex<PinnedTools>,
}

/// The first definition of a tool.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinnedTool {
    digest: String,
    /// The definition, if it is short enough.
    definition: Option<Value>,
    /// How the definition has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<String>,
}

#[derive(Default)]
struct PinnedTools {
    first: BTreeMap<String, PinnedTool>,
    /// The tools beyond the most that are pinned.
    beyond: BTreeSet<String>,
    /// The arguments that tools mirror into headers.
    mirrored: BTreeMap<String, Vec<MirroredArgument>>,
}

impl ToolPins {
    /// Reads the pins of earlier sessions.
    pub fn open(folder: Option<PathBuf>) -> io::Result<Self> {
        let file = folder.map(|it| it.join(FILE));
        let first = file.as_ref().map_or_else(|| Ok(BTreeMap::new()), |it| read(it))?;
        Ok(Self { file, pins: Mutex::new(PinnedTools { first, ..PinnedTools::default() }) })
    }

    /// Returns the file that an operator edits to accept a changed description.
    pub fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    pub fn is_changed(&self, tool: &str) -> bool {
        self.change(tool).is_some()
    }

    /// Returns how the definition of a tool has changed.
    pub fn change(&self, tool: &str) -> Option<String> {
        let pins = self.pins();
        match pins.first.get(tool) {
            Some(pinned) => pinned.change.clone(),
            None => pins.beyond.contains(tool).then(|| TOO_MANY.to_owned()),
        }
    }

    /// Returns whether a list has had the tool.
    pub fn is_known(&self, tool: &str) -> bool {
        let pins = self.pins();
        pins.first.contains_key(tool) || pins.beyond.contains(tool)
    }

    /// Returns the first definition of a tool.
    fn first(&self, tool: &str) -> Option<Value> {
        self.pins().first.get(tool)?.definition.clone()
    }

    /// Returns the arguments that a tool mirrors into headers.
    pub fn mirrored(&self, tool: &str) -> Vec<MirroredArgument> {
        self.pins().mirrored.get(tool).cloned().unwrap_or_default()
    }

    /// Pins the tools that are seen for the first time, and marks those whose description has changed.
    fn pin(&self, tools: &[Value]) {
        let mut pins = self.pins();
        // Guards can share the file. Without it, the pins are those of this session only.
        let locked = self.file.as_ref().and_then(|it| lock_beside(it).ok());
        if let (Some(file), Some(_)) = (&self.file, &locked) {
            pins.merge(read(file).unwrap_or_default());
        }
        let mut is_new = false;
        for tool in tools {
            let Some(name) = name_of(tool) else { continue };
            let text = canonical(tool);
            let digest = Digest::of_file(text.as_bytes()).to_string();
            let count = pins.first.len();
            match pins.first.get_mut(name) {
                Some(pinned) if pinned.digest == digest => {}
                Some(pinned) => {
                    let change = Some(change_of(pinned.definition.as_ref(), tool, &digest));
                    is_new |= pinned.change != change;
                    pinned.change = change;
                }
                // A server with more tools gets no more of them through.
                None if count >= PINNED_MAX => {
                    pins.beyond.insert(name.to_owned());
                }
                None => {
                    let definition = (text.len() <= DEFINITION_BYTES_MAX).then(|| tool.clone());
                    pins.first.insert(name.to_owned(), PinnedTool { digest, definition, change: None });
                    is_new = true;
                }
            }
            if pins.first.contains_key(name) {
                pins.mirrored.insert(name.to_owned(), MirroredArgument::of(tool));
            }
        }
        if let (Some(file), true) = (&self.file, is_new) {
            let text = serde_json::to_vec_pretty(&pins.first).unwrap_or_default();
            let _ = write_whole(file, &text);
        }
    }

    fn pins(&self) -> MutexGuard<'_, PinnedTools> {
        // A panic cannot leave the maps half changed, so a poisoned lock is still usable.
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PinnedTools {
    /// Adds the pins of other guards. Their first definitions came before those of this guard.
    fn merge(&mut self, stored: BTreeMap<String, PinnedTool>) {
        for (name, mut pinned) in stored {
            if let Some(own) = self.first.remove(&name) {
                pinned.change = own.change.or(pinned.change);
            }
            self.first.insert(name, pinned);
        }
    }
}

/// A response to `tools/list`.
pub struct ToolList {
    message: Value,
}

impl ToolList {
    /// Takes a message that is a list of tools. It is recognized by its content, so that a list in an unexpected place is
    /// read too.
    pub fn of(message: Value) -> Result<Self, Value> {
        match message.pointer("/result/tools").is_some_and(Value::is_array) {
            true => Ok(Self { message }),
            false => Err(message),
        }
    }

    /// Returns the name of the first tool.
    pub fn first(&self) -> Option<&str> {
        self.tools().iter().find_map(name_of)
    }

    /// Returns whether no further tools follow.
    pub fn is_last(&self) -> bool {
        self.message.pointer("/result/nextCursor").is_none_or(Value::is_null)
    }

    fn tools(&self) -> &[Value] {
        self.message.pointer("/result/tools").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Pins the tools, and returns their names.
    pub fn pinned(&self, pins: &ToolPins) -> Vec<String> {
        pins.pin(self.tools());
        self.tools().iter().filter_map(name_of).map(str::to_owned).collect()
    }

    /// Returns the response with only these tools. A tool that has changed has its first definition, so the new one
    /// deceives no model.
    pub fn only(mut self, names: &BTreeSet<String>, pins: &ToolPins) -> Vec<u8> {
        let shown = |tool: &Value| {
            let name = name_of(tool).filter(|it| names.contains(*it))?;
            if pins.is_changed(name) { pins.first(name) } else { Some(tool.clone()) }
        };
        let tools: Vec<Value> = self.tools().iter().filter_map(shown).collect();
        self.message["result"]["tools"] = Value::Array(tools);
        server_message::line_of(&self.message)
    }

    /// Returns an error instead of the list.
    pub fn refused(&self, why: &str) -> Vec<u8> {
        json_rpc::error(&self.message["id"], why)
    }
}

/// Reads the pins of a file. A damaged file must not unpin all tools.
fn read(file: &Path) -> io::Result<BTreeMap<String, PinnedTool>> {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error),
        Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other),
    }
}

/// Locks a file for a change, until the result is dropped. Creates its folder, for its owner only.
fn lock_beside(file: &Path) -> io::Result<fs::File> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(file.parent().unwrap_or(Path::new(".")))?;
    let lock = fs::File::create(file.with_extension("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Writes a file. A crash leaves the earlier file.
fn write_whole(file: &Path, text: &[u8]) -> io::Result<()> {
    let beside = file.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(&beside, file)
}

/// Returns the change of a definition in words, for reviewers. Each definition has other words, so that an approval counts
/// for no other definition.
fn change_of(first: Option<&Value>, now: &Value, digest: &str) -> String {
    let description = |tool: &Value| {
        let text = tool["description"].as_str().unwrap_or("none");
        match text.char_indices().nth(EXCERPT_CHARS_MAX) {
            Some((end, _)) => format!("{}… (shown in part)", &text[..end]),
            None => text.to_owned(),
        }
    };
    let now_is = format!("Definition now: {digest}");
    let Some(first) = first else {
        return format!("{INTRODUCTION}\n\nDescription now:\n{}\n\n{now_is}", description(now));
    };
    let names: BTreeSet<&String> = [first, now].iter().filter_map(|it| it.as_object()).flat_map(Map::keys).collect();
    let other = names.into_iter().filter(|it| *it != "description" && first.get(*it) != now.get(*it));
    let other = other.map(|it| it.chars().take(100).collect::<String>()).take(20).collect::<Vec<_>>().join(", ");
    let (before, now) = (description(first), description(now));
    let other = if other.is_empty() { "none" } else { &other };
    format!(
        "{INTRODUCTION}\n\nDescription before:\n{before}\n\nDescription now:\n{now}\n\nOther changed parts: {other}\n\n{now_is}"
    )
}

fn name_of(tool: &Value) -> Option<&str> {
    tool.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(tools: &Value) -> ToolList {
        ToolList::of(json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}})).ok().unwrap()
    }

    fn tool(name: &str, description: &str) -> Value {
        json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
    }

    #[test]
    fn changed_description_is_found_in_this_session_and_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let open = || ToolPins::open(Some(folder.path().to_owned())).unwrap();
        let pins = open();
        assert_eq!(list(&json!([tool("a", "reads"), tool("b", "writes")])).pinned(&pins), ["a", "b"]);
        assert!(!pins.is_changed("a"));
        list(&json!([tool("a", "reads and sends"), tool("b", "writes")])).pinned(&pins);
        assert!(pins.is_changed("a") && !pins.is_changed("b"));
        let again = open();
        assert!(again.is_changed("a"), "the change is known before the tools are listed");
        let changed = list(&json!([tool("a", "reads and sends"), tool("c", "new")]));
        changed.pinned(&again);
        assert!(again.is_changed("a") && !again.is_changed("c"));
        let change = again.change("a").unwrap();
        assert!(change.contains("before:\nreads\n") && change.contains("now:\nreads and sends\n"), "{change}");
        let told: Value = serde_json::from_slice(&changed.only(&BTreeSet::from(["a".to_owned()]), &again)).unwrap();
        assert_eq!(told["result"]["tools"], json!([tool("a", "reads")]), "a model sees the first definition");
        let mut altered = tool("b", "writes");
        altered["inputSchema"]["required"] = json!(["bcc"]);
        let last = open();
        let mut other = tool("d", "first");
        list(&json!([other])).pinned(&pins);
        list(&json!([altered])).pinned(&last);
        other["description"] = json!("second");
        list(&json!([other])).pinned(&last);
        assert!(last.is_changed("d"), "another guard pinned it since");
        let change = last.change("b").unwrap();
        assert!(change.contains("Other changed parts: inputSchema\n"), "every part counts");
        altered["inputSchema"]["required"] = json!(["cc"]);
        list(&json!([altered])).pinned(&last);
        assert_ne!(last.change("b").unwrap(), change, "each definition is another change");
        fs::write(folder.path().join(FILE), "x").unwrap();
        assert!(ToolPins::open(Some(folder.path().to_owned())).is_err(), "a damaged file unpins nothing");
    }

    #[test]
    fn list_keeps_its_other_members() {
        let tools = json!([tool("a", "x"), tool("b", "y")]);
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools, "nextCursor": "n"}});
        let only =
            ToolList::of(message).ok().unwrap().only(&BTreeSet::from(["b".to_owned()]), &ToolPins::open(None).unwrap());
        let told: Value = serde_json::from_slice(&only).unwrap();
        assert_eq!(told["result"], json!({"tools": [tool("b", "y")], "nextCursor": "n"}));
        assert!(ToolList::of(json!({"id": 1, "error": {"code": 1}})).is_err());
        assert!(
            ToolList::of(json!({"id": 1, "result": {"content": [], "tools": []}})).is_ok(),
            "other members hide nothing"
        );
    }
}
