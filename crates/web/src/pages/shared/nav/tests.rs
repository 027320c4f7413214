use countersign_domain::identity::account::PersonRole;
use countersign_service::inbox::list::WaitingCount;

use super::{GROUPS, NavLink, NavLocation, Navigation, SCREENS};
use crate::auth::permissions::TABLE;

const ROLES: [PersonRole; 3] = [PersonRole::Reviewer, PersonRole::Admin, PersonRole::Auditor];

fn links(role: PersonRole, path: &str) -> Vec<NavLink> {
    Navigation::of(role, path, WaitingCount::Exactly(2)).lists.into_iter().flat_map(|it| it.links).collect()
}

fn current(path: &str) -> Vec<(&'static str, NavLocation)> {
    let links = links(PersonRole::Admin, path);
    links.into_iter().filter(|it| it.here.marked()).map(|it| (it.label, it.here)).collect()
}

#[test]
fn every_screen_is_a_route_that_somebody_may_open_and_stands_in_a_group_that_is_listed() {
    for screen in SCREENS {
        let rule = TABLE.iter().find(|it| it.method == "GET" && it.route == screen.address).expect(screen.address);
        assert!(!rule.people.is_empty(), "{}", screen.address);
        assert!(GROUPS.contains(&screen.group), "{}", screen.address);
        let twice = SCREENS.iter().filter(|it| it.address == screen.address || it.label == screen.label);
        assert_eq!(twice.count(), 1, "{}", screen.address);
    }
}

#[test]
fn a_person_is_shown_exactly_the_screens_that_the_table_of_roles_lets_them_open() {
    for role in ROLES {
        for screen in SCREENS {
            let may =
                TABLE.iter().any(|it| it.route == screen.address && it.method == "GET" && it.people.contains(&role));
            let shown = links(role, "/").iter().any(|it| it.url == screen.address);
            assert_eq!(shown, may, "{role:?} {}", screen.address);
        }
    }
    assert!(!links(PersonRole::Reviewer, "/").iter().any(|it| it.url == "/replays"));
}

#[test]
fn a_page_marks_the_one_screen_that_it_belongs_to() {
    assert_eq!(current("/"), [("Inbox", NavLocation::Page)]);
    assert_eq!(current("/reviews/0192f0c1"), [("Inbox", NavLocation::Below)]);
    assert_eq!(current("/amendments/0192f0c1"), [("Policies", NavLocation::Below)]);
    assert_eq!(current("/replays"), [("Replay", NavLocation::Page)]);
    assert_eq!(current("/policies-of-others"), []);
}

#[test]
fn what_waits_is_told_beside_the_inbox_and_nowhere_else() {
    let waiting: Vec<_> =
        links(PersonRole::Reviewer, "/policies").into_iter().filter(|it| it.waiting.counted() > 0).collect();
    assert_eq!(waiting.iter().map(|it| it.label).collect::<Vec<_>>(), ["Inbox"]);
}
