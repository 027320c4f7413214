//! OpenID Connect identities: the mapping of claims to roles and groups, and the allowed account names.

use std::collections::BTreeSet;

use super::account::PersonRole;
use crate::primitives::id::GroupName;
use crate::primitives::named_enum::named_enum;

/// The verified claims of a provider about a person.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OidcIdentity {
    pub issuer: String,
    /// The provider's permanent id of the person.
    pub subject: String,
    /// The current name at the provider.
    pub name: Option<String>,
    /// The claim values from which groups and roles are mapped.
    pub values: BTreeSet<String>,
    /// The ID token, as a hint for signing out at the provider.
    pub hint: String,
}

/// The mapping of claim values to groups and roles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimMapping {
    /// Claim values and their groups.
    pub groups: Vec<(String, GroupName)>,
    /// Claim values and their roles. The first match applies.
    pub roles: Vec<(String, PersonRole)>,
    /// The rule for people without a mapped value.
    pub admit: AdmissionRule,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdmissionRule {
    /// Only people with a mapped value.
    Mapped,
    /// Everyone whom the provider authenticates, even without a group.
    Anybody,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OidcMembership {
    pub role: PersonRole,
    /// The groups of the person.
    pub groups: BTreeSet<GroupName>,
}

impl ClaimMapping {
    /// Returns the role and groups for claim values, or `None` if the person is not admitted.
    pub fn standing(&self, values: &BTreeSet<String>) -> Option<OidcMembership> {
        let groups: BTreeSet<GroupName> =
            self.groups.iter().filter(|it| values.contains(&it.0)).map(|it| it.1.clone()).collect();
        // The administrator orders the roles, so the first match wins.
        let role = self.roles.iter().find(|it| values.contains(&it.0)).map(|it| it.1);
        let known = role.is_some() || !groups.is_empty() || self.admit == AdmissionRule::Anybody;
        // Without a mapped role the person is a reviewer, the role with the least administrative rights.
        known.then(|| OidcMembership { role: role.unwrap_or(PersonRole::Reviewer), groups })
    }
}

/// The length limit of a name, because lists show it.
const NAME_CHARS_MAX: usize = 64;

/// Returns the name of a new account: lower-case ASCII letters, digits and `. _ - @`. So people who choose their own
/// name at a provider cannot imitate an existing account with look-alike characters.
pub fn account_name(claimed: &str) -> Option<String> {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-' | '@');
    let fits = (1..=NAME_CHARS_MAX).contains(&claimed.len()) && claimed.chars().all(plain);
    // Lower case makes names that differ only in case the same account name.
    fits.then(|| claimed.to_ascii_lowercase())
}

named_enum! {
    /// The reason why a sign-in by a provider is rejected. The codes are those of the audit log.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum SignInRejected {
        /// The person or the provider refused.
        Refused = "refused",
        /// The provider does not answer, or its answer is invalid.
        ProviderDown = "provider_down",
        /// The state is unknown: expired, used, or from another browser.
        UnknownState = "unknown_state",
        /// The response comes from another provider than the request.
        WrongProvider = "wrong_provider",
        /// No trusted key signed the token.
        BadSignature = "bad_signature",
        /// The token is for another audience or another sign-in.
        NotForUs = "not_for_us",
        /// The token is expired or from the future. A clock may be wrong.
        WrongTime = "wrong_time",
        /// No claim value is mapped.
        NotMapped = "not_mapped",
        /// The name at the provider is not a valid account name.
        UnusableName = "unusable_name",
        /// Another account, a group or the owner of a token has the name or one that looks like it.
        NameTaken = "name_taken",
        Disabled = "disabled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: &[&str]) -> BTreeSet<String> {
        of.iter().map(|it| (*it).to_owned()).collect()
    }

    fn mapping(admit: AdmissionRule) -> ClaimMapping {
        let group = |name: &str| GroupName::try_from(name).unwrap();
        ClaimMapping {
            groups: vec![("fin".to_owned(), group("finance")), ("sec".to_owned(), group("security"))],
            roles: vec![("ops".to_owned(), PersonRole::Admin), ("fin".to_owned(), PersonRole::Reviewer)],
            admit,
        }
    }

    #[test]
    fn only_mapped_people_are_admitted_or_become_admins() {
        let strict = mapping(AdmissionRule::Mapped);
        assert_eq!(strict.standing(&values(&["staff", "finance", "admin"])), None);
        assert_eq!(strict.standing(&values(&["fin"])).unwrap().role, PersonRole::Reviewer);
        assert_eq!(
            strict.standing(&values(&["fin", "ops"])).unwrap().role,
            PersonRole::Admin,
            "the first line decides"
        );
        assert!(strict.standing(&values(&["ops"])).unwrap().groups.is_empty());
        let open = mapping(AdmissionRule::Anybody).standing(&values(&["staff"])).unwrap();
        assert_eq!((open.role, open.groups.len()), (PersonRole::Reviewer, 0));
    }

    #[test]
    fn account_names_from_a_provider_are_plain_ascii() {
        assert_eq!(account_name("Alice.Smith@example.org").as_deref(), Some("alice.smith@example.org"));
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for bad in ["", "\u{430}lice", "alice\u{200b}", "al ice", "a/b", "a\u{202e}b", "ａlice", "é", long.as_str()] {
            assert_eq!(account_name(bad), None, "{bad:?}");
        }
    }
}
