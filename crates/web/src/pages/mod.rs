//! HTML pages, one file per page.
//!
//! A handler parses the request, calls the service, and fills a view. A visitor without a session is redirected to
//! `/sign-in`. An error becomes a page ([`shared::error_page`]).

pub mod delivery;
pub mod episodes;
pub mod identity;
pub mod inbox;
pub mod interrupts;
pub mod log;
pub mod operations;
pub mod policies;
pub mod policy_changes;
pub mod reviews;
pub mod shared;
pub mod threads;

use actix_web::web::{self, ServiceConfig};

use shared::error_page::PageError;
use shared::responder::{ErrorPageResponder, PageResponder};

/// A comment of 4,000 characters with up to 12 bytes each in a form, and the other fields.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// A state and a patch of 1 MiB each. A form can encode one byte in three.
const STATE_FORM_BYTES_MAX: usize = 6 * 1024 * 1024;

/// The same, and a row of 300 bytes for each review that is decided together.
const SEVERAL_BYTES_MAX: usize = FORM_BYTES_MAX + 32 * 1024;

/// Registers the routes of all pages. `permissions` contains the role for each route.
pub fn routes(cfg: &mut ServiceConfig) {
    let form = web::FormConfig::default().limit(FORM_BYTES_MAX);
    cfg.app_data(form.error_handler(|_, request| PageError::unreadable(request).into()))
        .configure(sign_in_routes)
        .service(web::resource("/").route(web::get().to(PageResponder(inbox::list::show))))
        .service(web::resource("/live").route(web::get().to(ErrorPageResponder(log::live::show))))
        .configure(of_reviews)
        .service(
            web::resource("/what-if")
                .app_data(
                    web::FormConfig::default()
                        .limit(STATE_FORM_BYTES_MAX)
                        .error_handler(|_, request| PageError::unreadable(request).into()),
                )
                .route(web::get().to(PageResponder(policies::what_if::show)))
                .route(web::post().to(ErrorPageResponder(policies::what_if::submit))),
        )
        .service(web::resource("/policies").route(web::get().to(PageResponder(policies::list::show))))
        .service(
            web::resource("/amendments/{amendment}")
                .route(web::get().to(PageResponder(policy_changes::change_request::show))),
        )
        .service(
            web::resource("/amendments/{amendment}/decision")
                .route(web::get().to(policy_changes::change_request::back))
                .route(web::post().to(ErrorPageResponder(policy_changes::change_request::submit))),
        )
        .service(web::resource("/interrupts/{interrupt}").route(web::get().to(PageResponder(interrupts::show))))
        .service(
            web::resource("/interrupts/{interrupt}/decision")
                .route(web::get().to(interrupts::back))
                .route(web::post().to(ErrorPageResponder(interrupts::submit))),
        )
        .service(
            web::resource("/replays")
                .app_data(
                    web::FormConfig::default()
                        .limit(STATE_FORM_BYTES_MAX)
                        .error_handler(|_, request| PageError::unreadable(request).into()),
                )
                .route(web::get().to(PageResponder(policy_changes::replay::show)))
                .route(web::post().to(ErrorPageResponder(policy_changes::replay::submit))),
        )
        .service(web::resource("/rejections").route(web::get().to(PageResponder(policies::rejections::show))))
        .configure(past)
        .configure(people_routes)
        .configure(delivery_routes)
        .configure(halt_routes);
}

fn delivery_routes(cfg: &mut ServiceConfig) {
    let post = web::post;
    cfg.service(
        web::resource("/endpoints")
            .route(web::get().to(PageResponder(delivery::endpoints::show)))
            .route(post().to(ErrorPageResponder(delivery::endpoints::add))),
    )
    .service(web::resource("/endpoints/{endpoint}").route(web::get().to(PageResponder(delivery::endpoint::show))))
    .service(
        web::resource("/endpoints/{endpoint}/settings")
            .route(post().to(ErrorPageResponder(delivery::endpoint::change))),
    )
    .service(
        web::resource("/endpoints/{endpoint}/serving").route(post().to(ErrorPageResponder(delivery::endpoint::serve))),
    )
    .service(
        web::resource("/endpoints/{endpoint}/secret").route(post().to(ErrorPageResponder(delivery::endpoint::rotate))),
    )
    .service(web::resource("/endpoints/{endpoint}/test").route(post().to(ErrorPageResponder(delivery::endpoint::test))))
    .service(
        web::resource("/endpoints/{endpoint}/redeliveries")
            .route(post().to(ErrorPageResponder(delivery::endpoint::redeliver))),
    )
    .service(
        web::resource("/endpoints/{endpoint}/removal").route(post().to(ErrorPageResponder(delivery::endpoint::remove))),
    )
    .service(
        web::resource("/endpoints/{endpoint}/deliveries/{delivery}")
            .route(web::get().to(PageResponder(delivery::delivery_page::show))),
    )
    .service(
        web::resource("/endpoints/{endpoint}/deliveries/{delivery}/redelivery")
            .route(post().to(ErrorPageResponder(delivery::delivery_page::redeliver))),
    );
}

fn halt_routes(cfg: &mut ServiceConfig) {
    cfg.service(
        web::resource("/emergency")
            .route(web::get().to(PageResponder(operations::halt::show)))
            .route(web::post().to(ErrorPageResponder(operations::halt::stop))),
    )
    .service(
        web::resource("/emergency/lifting")
            .route(web::get().to(operations::halt::back))
            .route(web::post().to(ErrorPageResponder(operations::halt::lift))),
    );
}

fn past(cfg: &mut ServiceConfig) {
    cfg.service(web::resource("/threads").route(web::get().to(PageResponder(threads::list::show))))
        .service(web::resource("/imports").route(web::get().to(PageResponder(episodes::imports::show))))
        .service(web::resource("/threads/{thread}").route(web::get().to(ErrorPageResponder(threads::thread::show))))
        .service(
            web::resource("/threads/{thread}/episode").route(web::get().to(PageResponder(episodes::episode::show))),
        )
        .service(
            web::resource("/threads/{thread}/episode/{artefact}")
                .route(web::get().to(ErrorPageResponder(episodes::episode::download))),
        )
        .service(web::resource("/threads/{thread}/compare").route(web::get().to(PageResponder(threads::compare::show))))
        .service(
            web::resource("/threads/{thread}/versions/{version}")
                .route(web::get().to(PageResponder(threads::version::show))),
        )
        .service(
            web::resource("/threads/{thread}/versions/{version}/rollback")
                .route(web::get().to(threads::rollback::back))
                .route(web::post().to(ErrorPageResponder(threads::rollback::submit))),
        )
        .service(web::resource("/insight").route(web::get().to(PageResponder(log::insight::show))))
        .service(web::resource("/log").route(web::get().to(PageResponder(log::browse::show))))
        .service(web::resource("/log.jsonl").route(web::get().to(ErrorPageResponder(log::browse::download))))
        .service(web::resource("/log/{event}").route(web::get().to(PageResponder(log::browse::show_event))))
        .service(
            web::resource("/verifier")
                .route(web::get().to(PageResponder(log::receipt_verifier::show)))
                .route(web::post().to(ErrorPageResponder(log::receipt_verifier::submit))),
        );
}

fn of_reviews(cfg: &mut ServiceConfig) {
    let several = web::FormConfig::default().limit(SEVERAL_BYTES_MAX);
    cfg.service(
        web::resource("/votes")
            .app_data(several.error_handler(|_, request| PageError::unreadable(request).into()))
            .route(web::get().to(inbox::bulk_decide::back))
            .route(web::post().to(ErrorPageResponder(inbox::bulk_decide::submit))),
    )
    .service(web::resource("/reviews/{review}").route(web::get().to(PageResponder(reviews::review::show))))
    .service(
        web::resource("/reviews/{review}/arguments")
            .route(web::get().to(ErrorPageResponder(reviews::arguments::download))),
    )
    .service(
        web::resource("/reviews/{review}/decision")
            .route(web::get().to(reviews::review::back))
            .route(web::post().to(ErrorPageResponder(reviews::decide::submit))),
    )
    .service(
        web::resource("/reviews/{review}/revocation")
            .route(web::get().to(reviews::review::back))
            .route(web::post().to(ErrorPageResponder(reviews::revoke_receipt::submit))),
    )
    .service(
        web::resource("/reviews/{review}/withdrawal")
            .route(web::get().to(reviews::review::back))
            .route(web::post().to(ErrorPageResponder(reviews::withdraw::submit))),
    )
    .service(
        web::resource("/reviews/{review}/extension")
            .route(web::get().to(reviews::review::back))
            .route(web::post().to(ErrorPageResponder(reviews::extend::submit))),
    )
    .service(
        web::resource("/reviews/{review}/comments")
            .route(web::get().to(reviews::review::back))
            .route(web::post().to(ErrorPageResponder(reviews::comment::submit))),
    )
    .service(
        web::resource("/reviews/{review}/edit")
            .route(web::get().to(ErrorPageResponder(reviews::edit::show)))
            .route(web::post().to(ErrorPageResponder(reviews::edit::submit))),
    )
    .service(
        web::resource("/reviews/{review}/reveal")
            .route(web::get().to(reviews::review::back))
            .route(web::post().to(ErrorPageResponder(reviews::reveal::submit))),
    );
}

fn people_routes(cfg: &mut ServiceConfig) {
    let post = web::post;
    cfg.service(
        web::resource("/password/{secret}")
            .route(web::get().to(ErrorPageResponder(identity::choose_password::show)))
            .route(web::post().to(ErrorPageResponder(identity::choose_password::submit))),
    )
    .service(web::resource("/people").route(web::get().to(PageResponder(identity::people::show))))
    .service(
        web::resource("/people/invitations")
            .route(web::get().to(identity::people::back))
            .route(post().to(ErrorPageResponder(identity::people::invite))),
    )
    .service(
        web::resource("/people/links/{link}/withdrawal")
            .route(post().to(ErrorPageResponder(identity::people::withdraw))),
    )
    .service(web::resource("/people/{account}").route(web::get().to(PageResponder(identity::person::show))))
    .service(
        web::resource("/people/{account}/access").route(post().to(ErrorPageResponder(identity::person::change_access))),
    )
    .service(web::resource("/people/{account}/admission").route(post().to(ErrorPageResponder(identity::person::admit))))
    .service(
        web::resource("/people/{account}/unlocking").route(post().to(ErrorPageResponder(identity::person::unlock))),
    )
    .service(
        web::resource("/people/{account}/passkeys")
            .route(post().to(ErrorPageResponder(identity::person::remove_passkeys))),
    )
    .service(web::resource("/people/{account}/reset").route(post().to(ErrorPageResponder(identity::person::reset))))
    .service(
        web::resource("/tokens")
            .route(web::get().to(PageResponder(identity::tokens::show)))
            .route(post().to(ErrorPageResponder(identity::tokens::add))),
    )
    .service(web::resource("/tokens/{token}/revocation").route(post().to(ErrorPageResponder(identity::tokens::revoke))))
    .service(
        web::resource("/delegations")
            .route(web::get().to(PageResponder(identity::delegations::show)))
            .route(post().to(ErrorPageResponder(identity::delegations::submit))),
    )
    .service(
        web::resource("/delegations/{delegation}/end")
            .route(web::get().to(identity::delegations::back))
            .route(post().to(ErrorPageResponder(identity::delegations::end))),
    )
    .service(web::resource("/account").route(web::get().to(PageResponder(identity::account::show))))
    .service(
        web::resource("/account/password").route(post().to(ErrorPageResponder(identity::account::change_password))),
    )
    .service(web::resource("/account/contact").route(post().to(ErrorPageResponder(identity::account::set_contact))))
    .service(web::resource("/account/sessions").route(post().to(ErrorPageResponder(identity::account::end_sessions))));
}

/// Registers the pages without a session, and sign-out.
fn sign_in_routes(cfg: &mut ServiceConfig) {
    cfg.service(web::resource("/docs").route(web::get().to(ErrorPageResponder(operations::api_reference::show))));
    cfg.service(
        web::resource("/sign-in")
            .route(web::get().to(ErrorPageResponder(identity::sign_in::show)))
            .route(web::post().to(ErrorPageResponder(identity::sign_in::submit))),
    )
    .service(
        web::resource("/sign-in/oidc")
            .route(web::get().to(ErrorPageResponder(identity::sign_in::show)))
            .route(web::post().to(ErrorPageResponder(identity::oidc::submit))),
    )
    .service(
        web::resource("/sign-in/oidc/return").route(web::get().to(ErrorPageResponder(identity::oidc::oidc_callback))),
    )
    .service(web::resource("/sign-in/passkey").route(web::post().to(ErrorPageResponder(identity::passkeys::sign_in))))
    .service(
        web::resource("/account/passkeys")
            .route(web::get().to(PageResponder(identity::passkeys::show)))
            .route(web::post().to(ErrorPageResponder(identity::passkeys::add))),
    )
    .service(
        web::resource("/account/passkeys/removal")
            .route(web::get().to(identity::passkeys::back))
            .route(web::post().to(ErrorPageResponder(identity::passkeys::remove))),
    )
    .service(
        web::resource("/sign-in/{secret}")
            .route(web::get().to(ErrorPageResponder(identity::sign_in::show_link)))
            .route(web::post().to(ErrorPageResponder(identity::sign_in::use_link))),
    )
    .service(
        web::resource("/set-up/{secret}")
            .route(web::get().to(ErrorPageResponder(identity::set_up::show)))
            .route(web::post().to(ErrorPageResponder(identity::set_up::submit))),
    )
    .service(web::resource("/sign-out").route(web::post().to(ErrorPageResponder(identity::sign_in::sign_out))));
}

#[cfg(test)]
mod tests;
