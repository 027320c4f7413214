mod bulk_decide;
mod commitment_rows;
mod delegations;
mod endpoints;
mod episodes;
mod history;
mod interrupts;
mod people;
mod recompute_script;
mod sample;
mod screens;
mod site;

use askama::Template;
use sample::SampleReview;

use super::episodes::episode_view::ImportSignerView;

fn all() -> Vec<(&'static str, String)> {
    vec![
        ("sign_in", screens::sign_in().render().unwrap()),
        ("leaving", screens::leaving().render().unwrap()),
        ("sign_in_link", screens::sign_in_link().render().unwrap()),
        ("set_up", screens::set_up().render().unwrap()),
        ("error", screens::error().render().unwrap()),
        ("inbox", screens::inbox().render().unwrap()),
        ("inbox_empty", screens::empty_inbox().render().unwrap()),
        ("inbox_nothing_found", screens::nothing_found().render().unwrap()),
        ("review", SampleReview::small().page().render().unwrap()),
        ("review_rich", SampleReview::rich().page().render().unwrap()),
        ("review_reaffirm", screens::own_agent().render().unwrap()),
        ("review_doubt", screens::doubtful().render().unwrap()),
        ("review_decided", screens::decided().render().unwrap()),
        ("edit", screens::edit().render().unwrap()),
        ("sign_policy", interrupts::sign_policy().render().unwrap()),
        ("interrupt", interrupts::page().render().unwrap()),
        ("interrupt_ended", interrupts::ended().render().unwrap()),
        ("interrupt_confirm", interrupts::confirm().render().unwrap()),
        ("several", bulk_decide::page().render().unwrap()),
        ("several_apart", bulk_decide::apart().render().unwrap()),
        ("several_told", bulk_decide::told().render().unwrap()),
        ("confirm", screens::confirm().render().unwrap()),
        ("confirm_typed", screens::confirm_typed().render().unwrap()),
        ("confirm_signed", screens::confirm_signed().render().unwrap()),
        ("passkeys", screens::passkeys().render().unwrap()),
        ("passkeys_nowhere", screens::passkeys_nowhere().render().unwrap()),
        ("thread", screens::thread().render().unwrap()),
        ("thread_of_another", screens::of_another().render().unwrap()),
        ("episode", episodes::page().render().unwrap()),
        ("episode_begun", episodes::begun().render().unwrap()),
        ("episode_imported", episodes::imported(ImportSignerView::Nobody).render().unwrap()),
        ("imports", episodes::imports().render().unwrap()),
        ("imports_empty", episodes::no_imports().render().unwrap()),
        ("threads", history::threads().render().unwrap()),
        ("threads_empty", history::threads_empty().render().unwrap()),
        ("insight", history::insight().render().unwrap()),
        ("insight_empty", history::insight_empty().render().unwrap()),
        ("version", history::version().render().unwrap()),
        ("compare", history::compare().render().unwrap()),
        ("log", history::log().render().unwrap()),
        ("log_empty", history::log_empty().render().unwrap()),
        ("event", history::one_event().render().unwrap()),
        ("verifier", history::verifier().render().unwrap()),
        ("people", people::people().render().unwrap()),
        ("person", people::person_page().render().unwrap()),
        ("secret", people::secret().render().unwrap()),
        ("tokens", people::tokens().render().unwrap()),
        ("endpoints", endpoints::endpoints().render().unwrap()),
        ("endpoints_empty", endpoints::endpoints_empty().render().unwrap()),
        ("endpoint", endpoints::endpoint().render().unwrap()),
        ("endpoint_resuming", endpoints::endpoint_resuming().render().unwrap()),
        ("endpoint_disabled", endpoints::endpoint_disabled().render().unwrap()),
        ("delivery", endpoints::delivery().render().unwrap()),
        ("account", people::account().render().unwrap()),
        ("delegations", delegations::delegations().render().unwrap()),
        ("delegations_watched", delegations::delegations_watched().render().unwrap()),
        ("delegate", delegations::delegate().render().unwrap()),
        ("delegate_signed", delegations::delegate_signed().render().unwrap()),
        ("review_for_another", screens::for_another().render().unwrap()),
        ("password", people::password().render().unwrap()),
        ("emergency", people::emergency().render().unwrap()),
        ("emergency_confirm", people::emergency_confirm().render().unwrap()),
    ]
}

/// Writes every sample page to a file, for a look in a browser.
#[test]
fn every_screen_renders() {
    let folder = std::env::temp_dir().join("countersign-preview");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, html) in all() {
        std::fs::write(folder.join(format!("{name}.html")), &html).unwrap();
        assert!(html.contains("<main id=\"main\""), "{name}");
    }
}

#[test]
fn no_page_carries_a_script_or_style_of_its_own() {
    for (name, html) in all() {
        for forbidden in ["<style", " style=", "<script>", "javascript:", " onclick", " onload", " onsubmit"] {
            assert!(!html.contains(forbidden), "{name}: {forbidden}");
        }
        assert_eq!(
            html.matches("<script").count(),
            html.matches("<script type=\"module\" src=\"/assets/").count(),
            "{name}"
        );
    }
}
