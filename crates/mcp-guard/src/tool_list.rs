//! The list of tools that a model sees: those that the policy allows, as they were described first.
//!
//! A server that changes the description of a tool can deceive a model that trusts it already. So the first description
//! is pinned, and a tool with another one is neither listed nor called.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use countersign_domain::chain::hash::Digest;
use countersign_domain::json::canonical::canonical;
use serde_json::Value;

use crate::mirrored::MirroredArgument;
use crate::{message, server_message};

/// The name of the file with the pinned descriptions.
const FILE: &str = "tools.json";

/// The most tools of a server.
const PINNED_MAX: usize = 10_000;

/// The pinned descriptions, by the name of the tool.
pub struct ToolPins {
    file: Option<PathBuf>,
    pins: Mutex<PinnedTools>,
}

#[derive(Default)]
struct PinnedTools {
    digests: BTreeMap<String, String>,
    /// The tools whose description has changed.
    changed: BTreeSet<String>,
    /// The arguments that tools mirror into headers.
    mirrored: BTreeMap<String, Vec<MirroredArgument>>,
}

impl ToolPins {
    /// Reads the pins of earlier sessions.
    pub fn open(folder: Option<PathBuf>) -> io::Result<Self> {
        let file = folder.map(|it| it.join(FILE));
        let digests = match file.as_ref().map(fs::read) {
            None => BTreeMap::new(),
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Some(Err(error)) => return Err(error),
            // A damaged file must not unpin all tools.
            Some(Ok(text)) => serde_json::from_slice(&text).map_err(io::Error::other)?,
        };
        Ok(Self { file, pins: Mutex::new(PinnedTools { digests, ..PinnedTools::default() }) })
    }

    /// Returns the file that an operator edits to accept a changed description.
    pub fn file(&self) -> Option<&PathBuf> {
        self.file.as_ref()
    }

    pub fn is_changed(&self, tool: &str) -> bool {
        self.pins().changed.contains(tool)
    }

    /// Returns the arguments that a tool mirrors into headers.
    pub fn mirrored(&self, tool: &str) -> Vec<MirroredArgument> {
        self.pins().mirrored.get(tool).cloned().unwrap_or_default()
    }

    /// Pins the tools that are seen for the first time, and marks those whose description has changed.
    fn pin(&self, tools: &[Value]) {
        let mut pins = self.pins();
        let before = pins.digests.len();
        for tool in tools {
            let Some(name) = name_of(tool) else { continue };
            let digest = Digest::of_file(canonical(tool).as_bytes()).to_string();
            match pins.digests.get(name) {
                Some(pinned) if *pinned == digest => {}
                Some(_) => drop(pins.changed.insert(name.to_owned())),
                // A server with more tools gets no more of them through.
                None if pins.digests.len() >= PINNED_MAX => drop(pins.changed.insert(name.to_owned())),
                None => drop(pins.digests.insert(name.to_owned(), digest)),
            }
            if pins.digests.contains_key(name) {
                pins.mirrored.insert(name.to_owned(), MirroredArgument::of(tool));
            }
        }
        if let (Some(file), true) = (&self.file, pins.digests.len() > before) {
            let text = serde_json::to_vec_pretty(&pins.digests).unwrap_or_default();
            // Without the file, the pins are those of this session only.
            let _ = write_whole(file, &text);
        }
    }

    fn pins(&self) -> MutexGuard<'_, PinnedTools> {
        // A panic cannot leave the maps half changed, so a poisoned lock is still usable.
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn tools(&self) -> &[Value] {
        self.message.pointer("/result/tools").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Pins the tools, and returns the names of those that are unchanged.
    pub fn unchanged(&self, pins: &ToolPins) -> Vec<String> {
        pins.pin(self.tools());
        let names = self.tools().iter().filter_map(name_of);
        names.filter(|it| !pins.is_changed(it)).map(str::to_owned).collect()
    }

    /// Returns the response with only these tools.
    pub fn only(mut self, names: &BTreeSet<String>) -> Vec<u8> {
        let kept = |it: &&Value| name_of(it).is_some_and(|name| names.contains(name));
        let tools: Vec<Value> = self.tools().iter().filter(kept).cloned().collect();
        self.message["result"]["tools"] = Value::Array(tools);
        server_message::line_of(&self.message)
    }

    /// Returns an error instead of the list.
    pub fn refused(&self, why: &str) -> Vec<u8> {
        message::error(&self.message["id"], why)
    }
}

/// Writes a file in a folder of its owner. A crash leaves the earlier file.
fn write_whole(file: &Path, text: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let beside = file.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(&beside, file)
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
        assert_eq!(list(&json!([tool("a", "reads"), tool("b", "writes")])).unchanged(&pins), ["a", "b"]);
        assert_eq!(list(&json!([tool("a", "reads and sends"), tool("b", "writes")])).unchanged(&pins), ["b"]);
        assert!(pins.is_changed("a") && !pins.is_changed("b"));
        let again = open();
        assert_eq!(list(&json!([tool("a", "reads and sends"), tool("c", "new")])).unchanged(&again), ["c"]);
        let mut altered = tool("b", "writes");
        altered["inputSchema"]["required"] = json!(["bcc"]);
        assert!(list(&json!([altered])).unchanged(&open()).is_empty(), "every part of the definition counts");
        fs::write(folder.path().join(FILE), "x").unwrap();
        assert!(ToolPins::open(Some(folder.path().to_owned())).is_err(), "a damaged file unpins nothing");
    }

    #[test]
    fn list_keeps_its_other_members() {
        let tools = json!([tool("a", "x"), tool("b", "y")]);
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools, "nextCursor": "n"}});
        let only = ToolList::of(message).ok().unwrap().only(&BTreeSet::from(["b".to_owned()]));
        let told: Value = serde_json::from_slice(&only).unwrap();
        assert_eq!(told["result"], json!({"tools": [tool("b", "y")], "nextCursor": "n"}));
        assert!(ToolList::of(json!({"id": 1, "error": {"code": 1}})).is_err());
        assert!(
            ToolList::of(json!({"id": 1, "result": {"content": [], "tools": []}})).is_ok(),
            "other members hide nothing"
        );
    }
}
