//! What one reader is shown of the texts and states of a thread. The only place that decides which of them are compared
//! with redacted values: never one that the reader could have chosen, or the result would answer a guess.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::Service;
use super::error::Result;
use super::provenance::Standpoint;
use crate::domain::account::{Account, Token};
use crate::domain::id::{NodeId, PrincipalId};
use crate::domain::json::pointer::Pointer;
use crate::domain::keys::Keys;
use crate::domain::party::{Author, Party};
use crate::domain::policy::{Comparison, HiddenValues, Hiding, Policy, Side};
use crate::domain::tool::Tool;
use crate::domain::transition::Transition;

/// Leaves of one state whose authors are looked up for one reader. Only leaves that equal a redacted value are, so more of
/// them means that the reader knows as many values.
const TRACED_MAX: usize = 64;

/// Texts that stand beside some states, as one reader is shown them.
#[derive(Clone, Debug)]
pub struct Redaction {
    reader: Party,
    policies: Vec<Arc<Policy>>,
    every: Vec<HiddenValues>,
    /// What each of these nodes could read of the same states.
    readable: BTreeMap<NodeId, Vec<HiddenValues>>,
}

impl Redaction {
    /// For a reader, of texts beside these states that these nodes may have written.
    pub(super) fn new<'n>(
        reader: Party,
        policies: &[Arc<Policy>],
        (states, tool): (&[&Value], Option<&Tool>),
        nodes: impl IntoIterator<Item = &'n NodeId>,
    ) -> Self {
        let values = |comparison: Comparison<'_>| -> Vec<HiddenValues> {
            policies.iter().map(|it| Hiding::beside(it, comparison, states, tool).values().clone()).collect()
        };
        let readable = |node: &NodeId| (node.clone(), values(Comparison::WithReadable(Some(node))));
        Self {
            reader,
            every: values(Comparison::WithEvery),
            readable: nodes.into_iter().map(readable).collect(),
            policies: policies.to_vec(),
        }
    }

    /// Who reads.
    pub const fn reader(&self) -> &Party {
        &self.reader
    }

    /// The policies that redact.
    pub fn policies(&self) -> &[Arc<Policy>] {
        &self.policies
    }

    /// What somebody wrote, as the reader is shown it.
    pub fn words<'t>(&self, author: &Author, words: &'t str) -> Cow<'t, str> {
        let none = || vec![HiddenValues::default(); self.policies.len()];
        let values = match (comparison(&self.reader, author), author.node()) {
            (Comparison::WithEvery, _) => Cow::Borrowed(&self.every),
            (_, Some(node)) => self.readable.get(node).map_or_else(|| Cow::Owned(none()), Cow::Borrowed),
            (_, None) => Cow::Owned(none()),
        };
        let each_policy: Vec<(&Arc<Policy>, &HiddenValues)> = self.policies.iter().zip(values.iter()).collect();
        each(words, &each_policy, |(policy, values), words| values.masked(policy, words))
    }
}

/// Words with something taken out for each of those; borrowed if nothing was.
pub(super) fn each<'t, T>(
    words: &'t str,
    of: &[T],
    without: impl for<'w> Fn(&T, &'w str) -> Cow<'w, str>,
) -> Cow<'t, str> {
    of.iter().fold(Cow::Borrowed(words), |words, it| match words {
        Cow::Borrowed(words) => without(it, words),
        Cow::Owned(words) => Cow::Owned(without(it, &words).into_owned()),
    })
}

/// What each policy hides of these states, beside each of these calls.
fn hidings<'p, const N: usize>(
    policies: &'p [Arc<Policy>],
    states: [&Value; N],
    tools: &[Option<&Tool>],
) -> Vec<Hiding<'p>> {
    let each = policies.iter().flat_map(|policy| tools.iter().map(move |tool| (policy, tool)));
    each.map(|(policy, tool)| Hiding::of(policy, states, *tool)).collect()
}

/// Which redacted values a text is compared with before a reader is shown it.
pub(super) fn comparison<'a>(reader: &Party, author: &'a Author) -> Comparison<'a> {
    match reader.could_have_written_as(author.party()) {
        true => Comparison::WithReadable(author.node()),
        false => Comparison::WithEvery,
    }
}

/// What each policy redacts of a text or of a tool's arguments that stand beside these states.
pub(super) fn beside<'p>(
    policies: &'p [Arc<Policy>],
    comparison: Comparison<'_>,
    states: &[&Value],
    tool: Option<&Tool>,
) -> Vec<Hiding<'p>> {
    policies.iter().map(|it| Hiding::beside(it, comparison, states, tool)).collect()
}

impl Service {
    /// Who is behind an id.
    pub(super) async fn party_of(&self, keys: &Keys, principal: &PrincipalId) -> Result<Party> {
        if let Some(token) = self.fetch::<Token>(keys, principal.as_str()).await? {
            return Ok(Party::from(&token.record));
        }
        let account = self.fetch::<Account>(keys, principal.as_str()).await?;
        Ok(account.map_or(Party::Gone, |it| Party::from(&it.record)))
    }

    /// Who wrote a transition's texts: its editor, or whoever proposed it as its node.
    pub(super) async fn author_of(&self, keys: &Keys, transition: &Transition) -> Result<Author> {
        let statement = &transition.statement;
        match &transition.editor {
            Some(editor) => Ok(Author::of(self.party_of(keys, &PrincipalId::from(editor)).await?)),
            None => Ok(Author::as_node(self.party_of(keys, &statement.principal).await?, statement.node.as_ref())),
        }
    }

    /// What each policy redacts of these states, as one reader is shown them: a leaf that the reader could have chosen is
    /// compared with what its author could read, and with nothing else.
    pub(super) async fn hidings_for<'p, const N: usize>(
        &self,
        keys: &Keys,
        reader: &Party,
        policies: &'p [Arc<Policy>],
        standpoints: [Standpoint<'_>; N],
        tools: &[Option<&Tool>],
    ) -> Result<Vec<Hiding<'p>>> {
        let states: [&Value; N] = standpoints.each_ref().map(Standpoint::state);
        let strict = hidings(policies, states, tools);
        let mut spared: [BTreeSet<Pointer>; N] = std::array::from_fn(|_| BTreeSet::new());
        for (standpoint, spared) in standpoints.iter().zip(&mut spared) {
            let found = strict.iter().flat_map(|it| it.found_by_comparison(standpoint.state()));
            for at in found.collect::<BTreeSet<_>>().into_iter().take(TRACED_MAX) {
                let Some(author) = self.author_of_leaf(keys, standpoint, &at).await? else { continue };
                let Comparison::WithReadable(node) = comparison(reader, &author) else { continue };
                let known = |policy, tool: &Option<&Tool>| {
                    let readable = Hiding::beside(policy, Comparison::WithReadable(node), &states, *tool);
                    readable.equals_redacted(&at, standpoint.state())
                };
                if !policies.iter().any(|policy| tools.iter().any(|tool| known(policy, tool))) {
                    spared.insert(at);
                }
            }
        }
        if spared.iter().all(BTreeSet::is_empty) {
            return Ok(strict);
        }
        let sides: Vec<Side<'_>> = states.iter().zip(&spared).map(|(state, spared)| Side { state, spared }).collect();
        let each = policies.iter().flat_map(|policy| tools.iter().map(move |tool| (policy, tool)));
        Ok(each.map(|(policy, tool)| Hiding::of_sides(policy, &sides, *tool)).collect())
    }
}
