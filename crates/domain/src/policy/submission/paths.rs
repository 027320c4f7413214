//! Checks that each path of a policy can exist in a state.

use super::super::compile::transitions::read_place;
use super::super::error::{PolicyCode, PolicyError};
use super::super::model::{NodePolicy, Policy};
use super::super::pattern_set::Patterns;
use super::super::toml_reader::{TomlItem, TomlSection};
use super::{PolicyWarningCode, Warnings, advice, listed};
use crate::json::pattern::{Pattern, PatternSegment};
use crate::primitives::id::NodeId;
use crate::schema::{PathMiss, SchemaPaths, SchemaReach};

/// The purpose of a list of paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathUse {
    /// Each path restricts something, so a path that never matches loosens the policy.
    Restricts,
    /// Each path permits something, or describes it.
    Permits,
}

/// A list of paths with the paths of nodes that confirm its own.
struct PathList<'t> {
    items: Vec<TomlItem<'t>>,
    usage: PathUse,
    confirmed_by: Vec<&'t Patterns>,
}

/// Checks every list of paths of the state.
pub(super) fn check(policy: &Policy, root: &TomlSection<'_>, warnings: &mut Warnings) -> Result<(), PolicyError> {
    let mut schema = policy.schema.as_ref().map(|it| it.paths());
    let of_nodes = || policy.nodes.values().flat_map(|it| [&it.reads, &it.writes]).collect::<Vec<_>>();
    let mut lists =
        vec![PathList { items: items(root, "protected")?, usage: PathUse::Restricts, confirmed_by: of_nodes() }];
    if let Some(item) = root.get("redaction") {
        let items = items(&item.section()?, "hide")?;
        lists.push(PathList { items, usage: PathUse::Restricts, confirmed_by: of_nodes() });
    }
    for (section, node) in nodes(policy, root)? {
        let denied =
            PathList { items: items(&section, "deny")?, usage: PathUse::Restricts, confirmed_by: vec![&node.writes] };
        lists.push(denied);
        for key in ["reads", "writes"] {
            lists.push(PathList { items: items(&section, key)?, usage: PathUse::Permits, confirmed_by: Vec::new() });
        }
    }
    for list in &lists {
        for item in &list.items {
            check_path(item, list, schema.as_mut(), warnings)?;
        }
    }
    check_sent(policy, root, warnings)?;
    check_transitions(root, schema.as_mut(), warnings)?;
    check_rules(policy, root, schema.as_mut())
}

/// Returns the nodes with their sections.
fn nodes<'t>(
    policy: &'t Policy,
    root: &TomlSection<'t>,
) -> Result<Vec<(TomlSection<'t>, &'t NodePolicy)>, PolicyError> {
    let Some(nodes) = root.get("nodes") else { return Ok(Vec::new()) };
    let named = nodes.section()?.members(usize::MAX)?.into_iter().filter_map(|(name, _, item)| {
        let node = policy.nodes.get(&NodeId::try_from(name).ok()?)?;
        Some(item.section().map(|it| (it, node)))
    });
    named.collect()
}

fn items<'t>(section: &TomlSection<'t>, key: &str) -> Result<Vec<TomlItem<'t>>, PolicyError> {
    section.get(key).map_or(Ok(Vec::new()), |it| it.items(usize::MAX))
}

fn check_path(
    item: &TomlItem<'_>,
    list: &PathList<'_>,
    schema: Option<&mut SchemaPaths<'_>>,
    warnings: &mut Warnings,
) -> Result<(), PolicyError> {
    // The policy compiled, so every item is a pattern.
    let Some(pattern) = item.text().ok().and_then(|it| Pattern::try_from(it).ok()) else { return Ok(()) };
    let reach = schema.map(|it| it.reach(pattern.segments()));
    match (reach, list.usage) {
        (Some(SchemaReach::Never(miss)), PathUse::Restricts) => {
            Err(item.error(PolicyCode::NeverMatches, never(item, &pattern, &miss)))
        }
        (Some(SchemaReach::Never(miss)), PathUse::Permits) => {
            warnings.add(item, PolicyWarningCode::NeverMatches, never(item, &pattern, &miss));
            Ok(())
        }
        (Some(SchemaReach::Open(miss)), _) => {
            unconfirmed(item, &pattern, &miss, list, warnings);
            Ok(())
        }
        (None, PathUse::Restricts) => {
            without_schema(item, &pattern, list, warnings);
            Ok(())
        }
        (Some(SchemaReach::Named), _) | (None, PathUse::Permits) => Ok(()),
    }
}

/// Returns the sentence about a path that no state can have.
fn never(item: &TomlItem<'_>, pattern: &Pattern, miss: &PathMiss) -> String {
    let (path, advice) = (upto(pattern, miss.at), correction(pattern, miss));
    format!("`{}`: no state can have `{path}`, because the schema has no such path: {advice}", item.name())
}

/// Warns about a path that an open schema does not name.
fn unconfirmed(item: &TomlItem<'_>, pattern: &Pattern, miss: &PathMiss, list: &PathList<'_>, warnings: &mut Warnings) {
    let is_confirmed = is_confirmed(pattern, miss.at, &list.confirmed_by);
    let near = near_path(pattern, miss);
    // A permission for an unnamed path is common in an open schema. Only a probable typing error is worth a warning.
    if is_confirmed || (list.usage == PathUse::Permits && near.is_none()) {
        return;
    }
    let path = upto(pattern, miss.at);
    let advice = near.map_or_else(
        || "add it to the schema. With `additionalProperties` false, a misspelled path is refused".to_owned(),
        |it| format!("the nearest is `{it}`"),
    );
    let detail =
        format!("`{}`: the schema does not name `{path}`, and it allows other paths there: {advice}", item.name());
    warnings.add(item, PolicyWarningCode::UnconfirmedPath, detail);
}

/// Warns about a path that no node's list names, in a policy without a schema.
fn without_schema(item: &TomlItem<'_>, pattern: &Pattern, list: &PathList<'_>, warnings: &mut Warnings) {
    if pattern.segments().is_empty() || is_confirmed(pattern, 0, &list.confirmed_by) {
        return;
    }
    let known: Vec<&str> = list.confirmed_by.iter().flat_map(|it| it.iter()).map(Pattern::as_str).collect();
    let advice = match crate::primitives::nearest::nearest(pattern.as_str(), known.iter().copied()) {
        Some(meant) => format!("the nearest is `{meant}`"),
        None => {
            "add a `schema` that names it. With `additionalProperties` false, a misspelled path is refused".to_owned()
        }
    };
    let detail = format!("`{}`: nothing confirms that a state has `{pattern}`: {advice}", item.name());
    warnings.add(item, PolicyWarningCode::UnconfirmedPath, detail);
}

/// Returns whether some list of a node names the path as far as the segment at `at`.
fn is_confirmed(pattern: &Pattern, at: usize, lists: &[&Patterns]) -> bool {
    let names = |it: &Pattern| {
        let (own, other) = (pattern.segments(), it.segments());
        other.len() > at && own.iter().zip(other).all(|(own, other)| agree(own, other))
    };
    lists.iter().flat_map(|it| it.iter()).any(names)
}

fn agree(one: &PatternSegment, other: &PatternSegment) -> bool {
    match (one, other) {
        (PatternSegment::Key(one), PatternSegment::Key(other)) => one == other,
        _ => true,
    }
}

/// Warns about writes that the node's own schema never lets it send.
fn check_sent(policy: &Policy, root: &TomlSection<'_>, warnings: &mut Warnings) -> Result<(), PolicyError> {
    for (section, node) in nodes(policy, root)? {
        let Some(mut sent) = node.schema.as_ref().map(|it| it.paths()) else { continue };
        for item in items(&section, "writes")? {
            let Ok(pattern) = Pattern::try_from(item.text()?) else { continue };
            if let SchemaReach::Never(miss) = sent.reach(pattern.segments()) {
                let (path, advice) = (upto(&pattern, miss.at), correction(&pattern, &miss));
                let detail = format!(
                    "`{}`: the node can never send `{path}`, because its own schema has no such path: {advice}",
                    item.name()
                );
                warnings.add(&item, PolicyWarningCode::NeverMatches, detail);
            }
        }
    }
    Ok(())
}

/// Checks the paths of transition rules, which restrict how a value changes.
fn check_transitions(
    root: &TomlSection<'_>,
    schema: Option<&mut SchemaPaths<'_>>,
    warnings: &mut Warnings,
) -> Result<(), PolicyError> {
    let (Some(item), Some(schema)) = (root.get("transitions"), schema) else { return Ok(()) };
    let section = item.section()?;
    let listed = ["immutable", "monotonic_integer"].into_iter().map(|key| items(&section, key));
    let mut paths = Vec::new();
    for item in listed.collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        paths.push((item.text()?, item));
    }
    for key in ["ordered_enum", "keyed_arrays"] {
        let Some(table) = section.get(key) else { continue };
        paths.extend(table.section()?.members(usize::MAX)?.into_iter().map(|(path, _, item)| (path, item)));
    }
    for (path, item) in paths {
        let Some(pattern) = read_place(path).ok().and_then(|_| Pattern::try_from(path).ok()) else { continue };
        if let SchemaReach::Never(miss) = schema.reach(pattern.segments()) {
            warnings.add(&item, PolicyWarningCode::NeverMatches, never(&item, &pattern, &miss));
        }
    }
    Ok(())
}

/// Refuses a rule about one path that no state can have. Such a rule never holds or denies anything.
fn check_rules(
    policy: &Policy,
    root: &TomlSection<'_>,
    schema: Option<&mut SchemaPaths<'_>>,
) -> Result<(), PolicyError> {
    let Some(schema) = schema else { return Ok(()) };
    for (rule, item) in policy.rules.iter().zip(items(root, "rules")?) {
        let Some(pointer) = rule.only_path() else { continue };
        let segments: Vec<_> = pointer.tokens().map(|it| PatternSegment::Key(it.into_owned())).collect();
        if let (SchemaReach::Never(miss), Some(when)) = (schema.reach(&segments), item.section()?.get("when")) {
            let wanted = segments.get(miss.at).map_or("", |it| it.as_str());
            let advice = advice(wanted, miss.names.iter().map(String::as_str));
            let message = format!(
                "`{}`: no state can have the path '{pointer}', because the schema has no `{wanted}` there: {advice}",
                when.name()
            );
            return Err(when.error(PolicyCode::NeverMatches, message));
        }
    }
    Ok(())
}

/// Returns the path up to the segment that is missing.
fn upto(pattern: &Pattern, at: usize) -> String {
    let segments = pattern.segments();
    segments[..segments.len().min(at + 1)].iter().map(PatternSegment::as_str).collect::<Vec<_>>().join(".")
}

/// Returns the path with the nearest name at the missing segment.
fn near_path(pattern: &Pattern, miss: &PathMiss) -> Option<String> {
    let wanted = pattern.segments().get(miss.at)?.as_str();
    let meant = crate::primitives::nearest::nearest(wanted, miss.names.iter().map(String::as_str))?;
    Some(beside(pattern, miss.at, meant))
}

fn beside(pattern: &Pattern, at: usize, name: &str) -> String {
    let above = pattern.segments()[..at].iter().map(PatternSegment::as_str);
    above.chain([name]).collect::<Vec<_>>().join(".")
}

fn correction(pattern: &Pattern, miss: &PathMiss) -> String {
    let known: Vec<String> = miss.names.iter().map(|it| beside(pattern, miss.at, it)).collect();
    near_path(pattern, miss)
        .map_or_else(|| listed(known.iter().map(String::as_str)), |it| format!("the nearest is `{it}`"))
}
