//! The way to every screen: one table, which the bar and the menu are made from.

use actix_web::http::Method;

use crate::domain::identity::account::PersonRole;
use crate::service::inbox::Waiting;
use crate::web::auth::permissions;
use crate::web::auth::permissions::Caller;

/// What screens are for. The menu has one list for each, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// What waits, and what was turned away.
    Work,
    /// By what it is judged.
    Rules,
    /// What happened.
    Record,
    /// Who takes part, and how all of it is stopped.
    People,
    /// The reader's own.
    You,
}

/// Whether a wide screen's bar has room for it. The menu has the rest, and on a phone everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stands {
    /// In the bar.
    InBar,
    /// In the menu only.
    InMenu,
}

/// A screen that people go to from anywhere. Who may is said in [`roles::TABLE`].
pub struct Screen {
    /// Where it is listed.
    pub group: Group,
    /// The route, without anything to fill in.
    pub address: &'static str,
    /// What it is called.
    pub label: &'static str,
    /// Whether the bar has it.
    pub stands: Stands,
    /// What the addresses of its other pages begin with.
    pub under: &'static [&'static str],
}

/// Where everybody begins; the number of reviews that wait stands beside it.
const INBOX: &str = "/";

/// Every such screen.
pub const SCREENS: &[Screen] = &[
    bar(Group::Work, INBOX, "Inbox", &["/reviews/", "/interrupts/"]),
    bar(Group::Work, "/rejections", "Rejected", &[]),
    bar(Group::Work, "/threads", "History", &[]),
    bar(Group::Rules, "/policies", "Policies", &["/amendments/"]),
    menu(Group::Rules, "/what-if", "What if", &[]),
    menu(Group::Rules, "/replays", "Replay", &[]),
    menu(Group::Record, "/log", "Log", &[]),
    menu(Group::Record, "/insight", "Insight", &[]),
    menu(Group::Record, "/verifier", "Verifier", &[]),
    menu(Group::Record, "/imports", "Imported runs", &[]),
    menu(Group::People, "/people", "People", &[]),
    menu(Group::People, "/tokens", "Tokens", &[]),
    menu(Group::People, "/endpoints", "Webhooks", &[]),
    menu(Group::People, "/emergency", "Emergency", &[]),
    menu(Group::You, "/delegations", "Delegations", &[]),
    menu(Group::You, "/account", "Your account", &[]),
    menu(Group::You, "/account/passkeys", "Passkeys", &[]),
];

const GROUPS: [Group; 5] = [Group::Work, Group::Rules, Group::Record, Group::People, Group::You];

const fn bar(group: Group, address: &'static str, label: &'static str, under: &'static [&'static str]) -> Screen {
    Screen { group, address, label, stands: Stands::InBar, under }
}

const fn menu(group: Group, address: &'static str, label: &'static str, under: &'static [&'static str]) -> Screen {
    Screen { group, address, label, stands: Stands::InMenu, under }
}

/// The table as one person sees it, on one page.
#[derive(Clone, Debug, Default)]
pub struct Navigation {
    /// The groups in which there is something.
    pub lists: Vec<List>,
}

/// One group's screens.
#[derive(Clone, Debug)]
pub struct List {
    /// What stands above them.
    pub title: &'static str,
    /// The screens.
    pub links: Vec<Link>,
}

/// A way to a screen.
#[derive(Clone, Debug)]
pub struct Link {
    /// Where to.
    pub url: &'static str,
    /// What it is called.
    pub label: &'static str,
    /// Whether the bar has it.
    pub stands: Stands,
    /// Where one is, seen from it.
    pub here: Here,
    /// How many things wait there for the reader.
    pub waiting: Waiting,
}

/// Where one is, seen from a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Here {
    /// On that very page.
    Page,
    /// On a page that belongs to it.
    Below,
    /// Elsewhere.
    Not,
}

impl Here {
    /// The value of `aria-current`.
    pub const fn aria(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Below => "true",
            Self::Not => "false",
        }
    }

    /// Whether it is marked.
    pub fn marked(self) -> bool {
        self != Self::Not
    }
}

impl Group {
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

impl Screen {
    fn here(&self, path: &str) -> Here {
        // Everything is below the inbox's address.
        let own = self.address != INBOX && path.strip_prefix(self.address).is_some_and(|it| it.starts_with('/'));
        if path == self.address {
            Here::Page
        } else if own || self.under.iter().any(|it| path.starts_with(it)) {
            Here::Below
        } else {
            Here::Not
        }
    }
}

impl Link {
    /// Whether the bar has it.
    pub fn in_bar(&self) -> bool {
        self.stands == Stands::InBar
    }
}

impl List {
    /// Whether the bar has all of it, so that a wide screen's menu needs none of it.
    pub fn in_bar(&self) -> bool {
        self.links.iter().all(Link::in_bar)
    }
}

impl Navigation {
    /// What somebody of this role may open, from the page of that path.
    pub fn of(role: PersonRole, path: &str, waiting: Waiting) -> Self {
        let link = |screen: &Screen| Link {
            url: screen.address,
            label: screen.label,
            stands: screen.stands,
            here: screen.here(path),
            waiting: if screen.address == INBOX { waiting } else { Waiting::Exactly(0) },
        };
        let open = |screen: &&Screen| permissions::may(Caller::Person(role), &Method::GET, screen.address);
        let list = |group: Group| List {
            title: group.title(),
            links: SCREENS.iter().filter(|it| it.group == group).filter(open).map(link).collect(),
        };
        Self { lists: GROUPS.into_iter().map(list).filter(|it| !it.links.is_empty()).collect() }
    }

    /// What stands in the bar.
    pub fn bar(&self) -> impl Iterator<Item = &Link> {
        self.lists.iter().flat_map(|it| &it.links).filter(|it| it.in_bar())
    }
}

#[cfg(test)]
mod tests;
