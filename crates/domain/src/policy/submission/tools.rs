//! Checks that each tool that a policy restricts or describes can be called at all.

use super::super::compile::tools::TOOLS_KEYS;
use super::super::error::{PolicyCode, PolicyError};
use super::super::model::Policy;
use super::super::toml_reader::{TomlItem, TomlSection};
use super::super::tool_globs::{GlobSteps, ToolGlob, ToolGlobs};
use super::{PolicyWarningCode, Warnings, advice};
use crate::primitives::nearest::nearest;

/// The tools that nodes can call, as globs.
struct KnownTools<'p> {
    /// The flow's list, or the lists of the nodes if there is none.
    lists: Vec<&'p ToolGlobs>,
    steps: GlobSteps,
}

/// Checks every list of tools that is about the tools that other lists allow.
pub(super) fn check(policy: &Policy, root: &TomlSection<'_>, warnings: &mut Warnings) -> Result<(), PolicyError> {
    let of_nodes = || policy.nodes.values().filter_map(|it| it.tools.as_ref());
    let lists: Vec<&ToolGlobs> = policy.tools.allow.as_ref().map_or_else(|| of_nodes().collect(), |it| vec![it]);
    // Without any list no tool can be called, so there is no name to compare with.
    if lists.is_empty() {
        return Ok(());
    }
    let mut callable = KnownTools { lists, steps: GlobSteps::default() };
    if let Some(item) = root.get("tools") {
        let section = item.section()?;
        refuse_unknown(&section, "deny", &mut callable)?;
        for (name, _, item) in section.members(usize::MAX)?.into_iter().filter(|it| !TOOLS_KEYS.contains(&it.0)) {
            if let Some(detail) = callable.miss(&item, name) {
                warnings.add(&item, PolicyWarningCode::NeverMatches, detail);
            }
        }
        check_hidden(policy, &section, warnings)?;
    }
    for item in root.get("rules").map_or(Ok(Vec::new()), |it| it.items(usize::MAX))? {
        refuse_unknown(&item.section()?, "tools", &mut callable)?;
    }
    check_nodes(policy, root, &mut callable, warnings)
}

/// Refuses a list with a tool that no node can call. It was meant to restrict another one.
fn refuse_unknown(section: &TomlSection<'_>, key: &str, callable: &mut KnownTools<'_>) -> Result<(), PolicyError> {
    for item in section.get(key).map_or(Ok(Vec::new()), |it| it.items(usize::MAX))? {
        if let Some(detail) = callable.miss(&item, item.text()?) {
            return Err(item.error(PolicyCode::NeverMatches, detail));
        }
    }
    Ok(())
}

/// Warns about a node's tools that the flow's list never allows.
fn check_nodes(
    policy: &Policy,
    root: &TomlSection<'_>,
    callable: &mut KnownTools<'_>,
    warnings: &mut Warnings,
) -> Result<(), PolicyError> {
    let (Some(nodes), Some(_)) = (root.get("nodes"), &policy.tools.allow) else { return Ok(()) };
    for (_, _, node) in nodes.section()?.members(usize::MAX)? {
        for item in node.section()?.get("tools").map_or(Ok(Vec::new()), |it| it.items(usize::MAX))? {
            if let Some(detail) = callable.miss(&item, item.text()?) {
                warnings.add(&item, PolicyWarningCode::NeverMatches, detail);
            }
        }
    }
    Ok(())
}

/// Warns about a redacted argument that looks like a misspelled argument of a described tool.
fn check_hidden(policy: &Policy, tools: &TomlSection<'_>, warnings: &mut Warnings) -> Result<(), PolicyError> {
    let described = policy.tools.described.values();
    let arguments: Vec<&str> = described
        .flat_map(|it| it.show.iter().chain(it.labels.keys()).chain(it.units.keys()))
        .map(String::as_str)
        .collect();
    for (item, pattern) in
        tools.get("hide").map_or(Ok(Vec::new()), |it| it.items(usize::MAX))?.iter().zip(policy.tools.hidden.iter())
    {
        let Some(first) = pattern.segments().first().map(|it| it.as_str()) else { continue };
        if let (false, Some(meant)) = (arguments.contains(&first), nearest(first, arguments.iter().copied())) {
            let detail =
                format!("`{}`: no described tool has the argument `{first}`: the nearest is `{meant}`", item.name());
            warnings.add(item, PolicyWarningCode::UnconfirmedPath, detail);
        }
    }
    Ok(())
}

impl KnownTools<'_> {
    /// Returns the sentence about a name or glob that matches no tool that a node can call.
    fn miss(&mut self, item: &TomlItem<'_>, written: &str) -> Option<String> {
        // The policy compiled, so every item is a glob.
        let glob = ToolGlob::new(written).ok()?;
        let steps = &mut self.steps;
        if self.lists.iter().any(|list| list.meets(&glob, steps)) {
            return None;
        }
        let known: Vec<&str> = self.lists.iter().flat_map(|it| it.iter()).map(ToolGlob::as_str).collect();
        let advice = advice(written, known.iter().copied());
        Some(format!("`{}`: no list allows the tool `{written}`, so this never matches: {advice}", item.name()))
    }
}
