//! The navigation: one table from which the bar and the menu are built.

use actix_web::http::Method;
use countersign_domain::identity::account::PersonRole;
use countersign_service::inbox::list::WaitingCount;

use crate::auth::permissions;
use crate::auth::permissions::CallerRole;

/// Groups of pages. The menu has one list for each group, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NavGroup {
    /// Waiting and rejected changes, and the history.
    Work,
    Rules,
    Record,
    /// Accounts, tokens, webhooks and halts.
    People,
    You,
}

/// Whether the bar of a wide screen has the link. The menu has the other links, and all links on a phone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NavPlacement {
    InBar,
    InMenu,
}

/// A page of the navigation. The table of permissions contains the roles that may open it.
pub struct NavScreen {
    pub group: NavGroup,
    /// The route, without parameters.
    pub address: &'static str,
    pub label: &'static str,
    pub stands: NavPlacement,
    /// Path prefixes of the pages below this one.
    pub under: &'static [&'static str],
}

/// The start page. Its link shows the number of waiting reviews.
const INBOX: &str = "/";

pub const SCREENS: &[NavScreen] = &[
    bar(NavGroup::Work, INBOX, "Inbox", &["/reviews/", "/interrupts/"]),
    bar(NavGroup::Work, "/rejections", "Rejected", &[]),
    bar(NavGroup::Work, "/threads", "History", &[]),
    bar(NavGroup::Rules, "/policies", "Policies", &["/amendments/"]),
    menu(NavGroup::Rules, "/what-if", "What if", &[]),
    menu(NavGroup::Rules, "/replays", "Replay", &[]),
    menu(NavGroup::Record, "/log", "Audit log", &[]),
    menu(NavGroup::Record, "/insight", "Insight", &[]),
    menu(NavGroup::Record, "/verifier", "Verifier", &[]),
    menu(NavGroup::Record, "/imports", "Imported episodes", &[]),
    menu(NavGroup::People, "/people", "People", &[]),
    menu(NavGroup::People, "/tokens", "Tokens", &[]),
    menu(NavGroup::People, "/endpoints", "Webhooks", &[]),
    menu(NavGroup::People, "/emergency", "Halts", &[]),
    menu(NavGroup::You, "/delegations", "Delegations", &[]),
    menu(NavGroup::You, "/account", "Your account", &[]),
    menu(NavGroup::You, "/account/passkeys", "Passkeys", &[]),
];

const GROUPS: [NavGroup; 5] = [NavGroup::Work, NavGroup::Rules, NavGroup::Record, NavGroup::People, NavGroup::You];

const fn bar(group: NavGroup, address: &'static str, label: &'static str, under: &'static [&'static str]) -> NavScreen {
    NavScreen { group, address, label, stands: NavPlacement::InBar, under }
}

const fn menu(
    group: NavGroup,
    address: &'static str,
    label: &'static str,
    under: &'static [&'static str],
) -> NavScreen {
    NavScreen { group, address, label, stands: NavPlacement::InMenu, under }
}

/// The navigation of one account, on one page.
#[derive(Clone, Debug, Default)]
pub struct Navigation {
    /// Groups with at least one link.
    pub lists: Vec<NavList>,
}

#[derive(Clone, Debug)]
pub struct NavList {
    pub title: &'static str,
    pub links: Vec<NavLink>,
}

#[derive(Clone, Debug)]
pub struct NavLink {
    pub url: &'static str,
    pub label: &'static str,
    pub stands: NavPlacement,
    pub here: NavLocation,
    pub waiting: WaitingCount,
}

/// Position of the current page relative to a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NavLocation {
    Page,
    /// On a page below the link.
    Below,
    Not,
}

impl NavLocation {
    pub const fn aria(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Below => "true",
            Self::Not => "false",
        }
    }

    pub fn marked(self) -> bool {
        self != Self::Not
    }
}

impl NavGroup {
    const fn title(self) -> &'static str {
        match self {
            Self::Work => "Work",
            Self::Rules => "Rules",
            Self::Record => "Record",
            Self::People => "People",
            Self::You => "You",
        }
    }
}

impl NavScreen {
    fn here(&self, path: &str) -> NavLocation {
        // Every path starts with the path of the inbox, so the inbox has no pages below it by path.
        let own = self.address != INBOX && path.strip_prefix(self.address).is_some_and(|it| it.starts_with('/'));
        if path == self.address {
            NavLocation::Page
        } else if own || self.under.iter().any(|it| path.starts_with(it)) {
            NavLocation::Below
        } else {
            NavLocation::Not
        }
    }
}

impl NavLink {
    pub fn in_bar(&self) -> bool {
        self.stands == NavPlacement::InBar
    }
}

impl NavList {
    /// Whether the bar has all links of this list, so that the menu of a wide screen leaves it out.
    pub fn in_bar(&self) -> bool {
        self.links.iter().all(NavLink::in_bar)
    }
}

impl Navigation {
    /// Builds the navigation of a role on the page with this path.
    pub fn of(role: PersonRole, path: &str, waiting: WaitingCount) -> Self {
        let link = |screen: &NavScreen| NavLink {
            url: screen.address,
            label: screen.label,
            stands: screen.stands,
            here: screen.here(path),
            // Only the inbox lists reviews, so only its link has their number.
            waiting: if screen.address == INBOX { waiting } else { WaitingCount::Exactly(0) },
        };
        // The permission table decides, so that the menu never links to a page that refuses the visitor.
        let open = |screen: &&NavScreen| permissions::may(CallerRole::Person(role), &Method::GET, screen.address);
        let list = |group: NavGroup| NavList {
            title: group.title(),
            links: SCREENS.iter().filter(|it| it.group == group).filter(open).map(link).collect(),
        };
        // A role may see none of a group's pages, and its title alone would be confusing.
        Self { lists: GROUPS.into_iter().map(list).filter(|it| !it.links.is_empty()).collect() }
    }

    pub fn bar(&self) -> impl Iterator<Item = &NavLink> {
        self.lists.iter().flat_map(|it| &it.links).filter(|it| it.in_bar())
    }
}

#[cfg(test)]
mod tests;
