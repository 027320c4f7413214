//! Redaction of texts and states for one reader. Only this module decides which texts are compared with
//! redacted values. A text that the reader could have chosen is never compared, because the result would
//! confirm a guess.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_domain::identity::account::{Account, Token};
use countersign_domain::identity::party::{Author, Party};
use countersign_domain::keys::Keys;
use countersign_domain::policy::{Policy, RedactedValues, Redactor, ScannedState, StateText, project_any};
use countersign_domain::primitives::id::{NodeId, PrincipalId};
use countersign_domain::reviews::Hold;
use countersign_domain::threads::tool_call::Tool;
use countersign_domain::threads::transition::Transition;
use serde_json::Value;

use super::provenance::{ProvenanceTrace, TextAuthor, TraceStart};
use crate::error::{Error, Result};
use crate::platform::reason::WITHHELD;
use crate::threads::Threads;

/// The redaction of texts that belong to some states, for one reader.
#[derive(Clone, Debug)]
pub struct Redaction {
    reader: Party,
    policies: Vec<Arc<Policy>>,
    every: Vec<RedactedValues>,
    call: Option<SentCall>,
    /// The redacted values that an author with this knowledge could read in the same states.
    readable: Vec<(AuthorKnowledge, Vec<RedactedValues>)>,
}

/// The nodes of an author, and whether the author sent the tool call. They decide which values the author could read.
type AuthorKnowledge = (BTreeSet<NodeId>, bool);

/// A tool call, and who sent it. Only its sender has read its redacted arguments.
#[derive(Clone, Debug)]
pub(crate) struct SentCall {
    pub(crate) tool: Tool,
    pub(crate) caller: Author,
}

impl SentCall {
    /// Returns whether a text by this author may repeat the arguments. A deleted sender could be anyone, so a comparison
    /// with its arguments could confirm a guess.
    fn is_known_to(&self, author: &Author) -> bool {
        let is_sender = || author.party().could_have_written_as(self.caller.party());
        !author.nodes().is_empty() && *self.caller.party() != Party::Gone && is_sender()
    }
}

/// Returns the tool of a call if the author knows its arguments.
fn known_tool<'c>(call: Option<&'c SentCall>, author: &Author) -> Option<&'c Tool> {
    call.filter(|it| it.is_known_to(author)).map(|it| &it.tool)
}

impl Redaction {
    /// Prepares the redaction of texts by these authors. An author matters only if the reader could be that
    /// author.
    pub(crate) fn new<'a>(
        reader: Party,
        policies: &[Arc<Policy>],
        states: &[&Value],
        call: Option<&SentCall>,
        authors: impl IntoIterator<Item = &'a Author>,
    ) -> Self {
        let every = beside(policies, TextComparisonScope::Everything, states, call.map(|it| &it.tool));
        Self::with_redactors(reader, policies, &every, states, call, authors)
    }

    /// Does the same with the redactors of these states. There is one for each policy.
    pub(crate) fn with_redactors<'a>(
        reader: Party,
        policies: &[Arc<Policy>],
        every: &[Redactor<'_>],
        states: &[&Value],
        call: Option<&SentCall>,
        authors: impl IntoIterator<Item = &'a Author>,
    ) -> Self {
        let values = |hidings: &[Redactor<'_>]| hidings.iter().map(|it| it.values().clone()).collect::<Vec<_>>();
        let every = values(every);
        let mut readable: Vec<(AuthorKnowledge, Vec<RedactedValues>)> = Vec::new();
        for author in authors.into_iter().filter(|it| reader.could_have_written_as(it.party())) {
            let tool = known_tool(call, author);
            let knowledge = (author.nodes().clone(), tool.is_some());
            if !readable.iter().any(|it| it.0 == knowledge) {
                let seen = TextComparisonScope::By { nodes: author.nodes(), then: None };
                readable.push((knowledge, values(&beside(policies, seen, states, tool))));
            }
        }
        Self { reader, policies: policies.to_vec(), every, call: call.cloned(), readable }
    }

    pub const fn reader(&self) -> &Party {
        &self.reader
    }

    /// Returns the policies that redact.
    pub fn policies(&self) -> &[Arc<Policy>] {
        &self.policies
    }

    /// Returns the redaction of each policy for arguments by `author`, who was prepared.
    pub(crate) fn redactors(&self, author: &Author) -> Vec<Redactor<'_>> {
        let values = self.values_for(author);
        self.policies.iter().zip(values.iter()).map(|(it, of)| Redactor::with_values(it, of.clone())).collect()
    }

    /// Returns the values of each policy that texts by `author` are compared with.
    fn values_for(&self, author: &Author) -> Cow<'_, [RedactedValues]> {
        if !self.reader.could_have_written_as(author.party()) {
            return Cow::Borrowed(&self.every);
        }
        let knows_call = known_tool(self.call.as_ref(), author).is_some();
        let known = self.readable.iter().find(|it| it.0.0 == *author.nodes() && it.0.1 == knows_call);
        // For an author that was not prepared, a comparison could confirm a guess, so nothing is compared.
        let none = || vec![RedactedValues::default(); self.policies.len()];
        known.map_or_else(|| Cow::Owned(none()), |it| Cow::Borrowed(it.1.as_slice()))
    }

    /// Returns a text by `author` as the reader may see it.
    pub fn words<'t>(&self, author: &Author, words: &'t str) -> Cow<'t, str> {
        let values = self.values_for(author);
        let each_policy: Vec<(&Arc<Policy>, &RedactedValues)> = self.policies.iter().zip(values.iter()).collect();
        each(words, &each_policy, |(policy, values), words| values.masked(policy, words))
    }
}

/// Policies that redact texts, and the states whose redacted values are searched for in the texts.
pub(crate) struct RedactedTextContext {
    pub(crate) policies: Vec<Arc<Policy>>,
    pub(crate) states: [Value; 2],
    pub(crate) call: Option<SentCall>,
}

impl RedactedTextContext {
    /// Returns the redaction of texts by these authors for one reader.
    pub(crate) fn redaction<'a>(&self, reader: Party, authors: impl IntoIterator<Item = &'a Author>) -> Redaction {
        let states = [&self.states[0], &self.states[1]];
        Redaction::new(reader, &self.policies, &states, self.call.as_ref(), authors)
    }
}

/// The part of a transition that is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedactionDetail {
    /// The part for agents: the effect that their nodes may read, and their own arguments. No leaf is traced,
    /// so the response time reveals nothing.
    OfAnAgent,
    /// The whole transition, with the redacted effect.
    Whole,
}

/// Applies a masking function for each item. The result is borrowed if nothing was masked.
pub(crate) fn each<'t, T>(
    words: &'t str,
    of: &[T],
    without: impl for<'w> Fn(&T, &'w str) -> Cow<'w, str>,
) -> Cow<'t, str> {
    of.iter().fold(Cow::Borrowed(words), |words, it| match words {
        Cow::Borrowed(words) => without(it, words),
        Cow::Owned(words) => Cow::Owned(without(it, &words).into_owned()),
    })
}

/// The state values that a text is compared with.
#[derive(Clone, Copy)]
pub(crate) enum TextComparisonScope<'a> {
    /// All values, because the reader could not have chosen the text.
    Everything,
    /// Only values that an author with these nodes could read, under a redacting policy or the policy at that
    /// time.
    By { nodes: &'a BTreeSet<NodeId>, then: Option<&'a Arc<Policy>> },
}

/// Returns the redaction of each policy for a text or tool arguments that belong to these states. The tool is one whose
/// arguments the author knows.
fn beside<'p>(
    policies: &'p [Arc<Policy>],
    seen: TextComparisonScope<'_>,
    states: &[&Value],
    tool: Option<&Tool>,
) -> Vec<Redactor<'p>> {
    let TextComparisonScope::By { nodes, then } = seen else {
        return policies.iter().map(|it| Redactor::beside(it, states, tool)).collect();
    };
    let reads = || policies.iter().chain(then).map(AsRef::as_ref);
    let known: Vec<Value> = states.iter().map(|state| project_any(reads(), nodes, state)).collect();
    let known: Vec<&Value> = known.iter().collect();
    policies.iter().map(|it| Redactor::beside(it, &known, tool)).collect()
}

/// Returns the redaction of each policy for these states and each of these tool calls.
fn hidings<'p>(
    policies: &'p [Arc<Policy>],
    sides: &[ScannedState<'_>],
    calls: &[Option<&SentCall>],
) -> Vec<Redactor<'p>> {
    let each = policies.iter().flat_map(|policy| calls.iter().map(move |call| (policy, call)));
    each.map(|(policy, call)| Redactor::of_sides(policy, sides, call.map(|it| &it.tool))).collect()
}

/// The redaction for authors of texts, built once for each author.
struct AuthorRedactors<'p, 's> {
    policies: &'p [Arc<Policy>],
    states: &'s [&'s Value],
    calls: &'s [Option<&'s SentCall>],
    built: Vec<BuiltRedactors<'p, 's>>,
}

/// The redactors for texts of one author, who knows the arguments of these calls.
struct BuiltRedactors<'p, 's> {
    author: TextAuthor,
    known: Vec<Option<&'s Tool>>,
    redactors: Vec<Redactor<'p>>,
}

impl<'s> AuthorRedactors<'_, 's> {
    /// Returns whether the author of a text could read the redacted value that the text contains.
    fn has(&mut self, chosen: &TextAuthor, text: &StateText, state: &Value) -> bool {
        let known: Vec<Option<&'s Tool>> = self.calls.iter().map(|it| known_tool(*it, &chosen.author)).collect();
        let is_built = |it: &BuiltRedactors<'_, '_>| it.author.is_alike(chosen) && it.known == known;
        let index = self.built.iter().position(is_built).unwrap_or_else(|| {
            let seen = TextComparisonScope::By { nodes: chosen.author.nodes(), then: Some(&chosen.policy) };
            let redactors = known.iter().flat_map(|tool| beside(self.policies, seen, self.states, *tool)).collect();
            self.built.push(BuiltRedactors { author: chosen.clone(), known, redactors });
            self.built.len() - 1
        });
        self.built[index].redactors.iter().any(|it| it.equals_redacted(text, state))
    }
}

impl Threads {
    pub(crate) async fn party_of(&self, keys: &Keys, principal: &PrincipalId) -> Result<Party> {
        if let Some(token) = self.core.fetch::<Token>(keys, principal.as_str()).await? {
            return Ok(Party::from(&token.record));
        }
        let account = self.core.fetch::<Account>(keys, principal.as_str()).await?;
        Ok(account.map_or(Party::Gone, |it| Party::from(&it.record)))
    }

    /// Returns the author of a transition's rationale: its editor, or the proposer.
    pub(crate) async fn author_of(&self, keys: &Keys, transition: &Transition) -> Result<Author> {
        let statement = &transition.statement;
        match &transition.editor {
            Some(editor) => Ok(Author::of(self.party_of(keys, &PrincipalId::from(editor)).await?)),
            None => Ok(Author::as_node(self.party_of(keys, &statement.principal).await?, statement.node.as_ref())),
        }
    }

    /// Returns the authors of a transition's rationale and of its tool arguments. An edit keeps the arguments
    /// of the original proposal.
    pub(crate) async fn authors_of(&self, keys: &Keys, transition: &Transition) -> Result<(Author, Author)> {
        let author = self.author_of(keys, transition).await?;
        let Some(before) = transition.statement.supersedes.filter(|_| transition.editor.is_some()) else {
            return Ok((author.clone(), author));
        };
        let mut proposed = self.stated(keys, before).await?;
        while let (Some(_), Some(before)) = (&proposed.editor, proposed.statement.supersedes) {
            proposed = self.stated(keys, before).await?;
        }
        Ok((author, self.author_of(keys, &proposed).await?))
    }

    /// Returns the tool call of a transition, with its sender.
    pub(crate) async fn sent_call(&self, keys: &Keys, transition: &Transition) -> Result<Option<SentCall>> {
        let Some(tool) = transition.tool.clone() else { return Ok(None) };
        Ok(Some(SentCall { tool, caller: self.authors_of(keys, transition).await?.1 }))
    }

    /// Returns the redaction of each policy for these states and one reader. A text that the reader could
    /// have chosen is only compared with values that its author could read.
    pub(crate) async fn redactors_for<'p, const N: usize>(
        &self,
        keys: &Keys,
        reader: &Party,
        policies: &'p [Arc<Policy>],
        standpoints: [TraceStart<'_>; N],
        calls: &[Option<&SentCall>],
    ) -> Result<Vec<Redactor<'p>>> {
        let states: [&Value; N] = standpoints.each_ref().map(TraceStart::state);
        let mut spared: [BTreeSet<StateText>; N] = std::array::from_fn(|_| BTreeSet::new());
        let sides = |spared: &[BTreeSet<StateText>; N]| -> Vec<Redactor<'p>> {
            let sides: Vec<ScannedState<'_>> =
                states.iter().zip(spared).map(|(state, spared)| ScannedState { state, spared }).collect();
            hidings(policies, &sides, calls)
        };
        // Most states have no such text, and then no history is read.
        let strict = sides(&spared);
        // A reader without an id cannot be an author, so nothing is spared.
        let Some(asker) = reader.id() else { return Ok(strict) };
        let mut traces = None;
        let mut known = AuthorRedactors { policies, states: &states, calls, built: Vec::new() };
        for (standpoint, spared) in standpoints.iter().zip(&mut spared) {
            let state = standpoint.state();
            let found: BTreeSet<StateText> = strict.iter().flat_map(|it| it.found_by_comparison(state)).collect();
            for text in found {
                // A long past takes long to look through.
                let traces: &mut ProvenanceTrace<'_> = match &mut traces {
                    Some(begun) => begun,
                    none => none.insert(ProvenanceTrace::new(
                        self,
                        keys,
                        reader,
                        self.core.turns.telling.take(asker).await?,
                    )),
                };
                let Some(chosen) = traces.of_text(standpoint, &text).await? else { continue };
                let own = |it: &TextAuthor| reader.could_have_written_as(it.author.party());
                // The text is spared only if it must be a guess: the reader chose it and could not read the redacted
                // value.
                if chosen.iter().all(own) && !chosen.iter().any(|it| known.has(it, &text, state)) {
                    spared.insert(text);
                }
            }
        }
        if spared.iter().all(BTreeSet::is_empty) { Ok(strict) } else { Ok(sides(&spared)) }
    }

    /// Returns a comment as the reader may see it. If the state values are erased, redacted values in it
    /// cannot be found, so the whole comment is withheld.
    pub(crate) async fn redacted_comment(
        &self,
        keys: &Keys,
        hold: &Hold,
        reader: &Party,
        author: &Author,
        comment: &str,
    ) -> Result<String> {
        let states = async {
            let transition = self.transition(keys, hold.transition).await?;
            Ok((self.states_of(keys, &transition).await?, self.sent_call(keys, &transition).await?))
        };
        let ((before, after), call) = match states.await {
            Err(Error::Erased) => return Ok(WITHHELD.to_owned()),
            states => states?,
        };
        let thread = self.core.thread(keys, &hold.thread).await?.record;
        let policies = self.policies_over(keys, &thread, [hold.policy]).await?;
        let around = RedactedTextContext { policies, states: [before, after], call };
        let redaction = self.redaction_of_texts(&hold.thread, reader, around, Vec::new()).await?;
        Ok(redaction.words(author, comment).into_owned())
    }
}
