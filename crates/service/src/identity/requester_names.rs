//! Names of the accounts and tokens that made requests.

use std::collections::BTreeMap;

use countersign_domain::identity::account::{Account, Token};
use countersign_domain::keys::Keys;
use countersign_domain::primitives::id::PrincipalId;

use crate::error::Result;
use crate::identity::Identity;

impl Identity {
    /// Returns the names of these accounts and tokens by id. Deleted ones are left out.
    pub(crate) async fn names_of<'p>(
        &self,
        keys: &Keys,
        principals: impl IntoIterator<Item = &'p PrincipalId>,
    ) -> Result<BTreeMap<String, RequesterName>> {
        let mut ids: Vec<String> = principals.into_iter().map(ToString::to_string).collect();
        ids.sort();
        ids.dedup();
        let tokens = self.core.reader(keys).get_many::<Token>(&ids).await?.into_iter().map(|it| it.record);
        let mut names: BTreeMap<String, RequesterName> =
            tokens.map(|it| (it.id.to_string(), RequesterName::Token { name: it.name, owner: it.owner })).collect();
        ids.retain(|it| !names.contains_key(it));
        if !ids.is_empty() {
            let people = self.core.reader(keys).get_many::<Account>(&ids).await?.into_iter().map(|it| it.record);
            names.extend(people.map(|it| (it.id.to_string(), RequesterName::Person(it.name))));
        }
        Ok(names)
    }
}

/// The name of a requester, as people know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequesterName {
    Token {
        /// The name of the token.
        name: String,
        owner: String,
    },
    Person(String),
}
