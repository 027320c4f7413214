//! HTML, one file per screen.
//!
//! A handler parses the edge, calls the service, and fills a view model of [`view`]. Whoever has no
//! session is led to `/sign-in`; whatever goes wrong becomes a page in words ([`failure`]).

pub mod account;
pub mod amendment;
pub mod ballot;
pub mod comments;
pub mod compare;
pub mod decision;
pub mod delegations;
pub mod delivery;
mod delivery_rows;
pub mod differing;
pub mod done;
pub mod door;
pub mod edit;
pub mod emergency;
pub mod endpoint;
pub mod endpoints;
pub mod episode;
pub mod extension;
pub mod failure;
pub mod form;
pub mod imports;
pub mod inbox;
pub mod insight;
pub mod interrupt;
pub mod live;
pub mod local;
pub mod log;
pub mod nonce;
pub mod oidc;
pub mod parts;
pub mod passkeys;
pub mod password;
pub mod people;
pub mod person;
pub mod policies;
pub mod reference;
pub mod rejections;
pub mod replays;
pub mod reveal;
pub mod review;
pub mod revocation;
pub mod rollback;
pub mod set_up;
pub mod several;
pub mod shown;
pub mod sign_in;
pub mod thread;
pub mod threads;
pub mod tokens;
pub mod verifier;
pub mod version;
pub mod view;
pub mod visitor;
pub mod what_if;
pub mod withdrawal;

use actix_web::web::{self, ServiceConfig};

use failure::Failure;
use shown::Shown;

/// A comment of 4,000 characters, each of which may take 12 bytes in a form, and the fields around it.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// A state and a patch of 1 MiB each; a form may write a byte in three.
const STATE_FORM_BYTES_MAX: usize = 6 * 1024 * 1024;

/// The same, and a row of 300 bytes for each of the reviews that are decided at once.
const SEVERAL_BYTES_MAX: usize = FORM_BYTES_MAX + 32 * 1024;

/// Every screen's route. Who may see which is said in `roles`.
pub fn routes(cfg: &mut ServiceConfig) {
    let form = web::FormConfig::default().limit(FORM_BYTES_MAX);
    cfg.app_data(form.error_handler(|_, request| Failure::unreadable(request).into()))
        .configure(ways_in)
        .service(web::resource("/").route(web::get().to(Shown(inbox::show))))
        .service(web::resource("/live").route(web::get().to(live::show)))
        .configure(of_reviews)
        .service(
            web::resource("/what-if")
                .app_data(
                    web::FormConfig::default()
                        .limit(STATE_FORM_BYTES_MAX)
                        .error_handler(|_, request| Failure::unreadable(request).into()),
                )
                .route(web::get().to(Shown(what_if::show)))
                .route(web::post().to(what_if::submit)),
        )
        .service(web::resource("/policies").route(web::get().to(Shown(policies::show))))
        .service(web::resource("/amendments/{amendment}").route(web::get().to(Shown(amendment::show))))
        .service(
            web::resource("/amendments/{amendment}/decision")
                .route(web::get().to(amendment::back))
                .route(web::post().to(amendment::submit)),
        )
        .service(web::resource("/interrupts/{interrupt}").route(web::get().to(Shown(interrupt::show))))
        .service(
            web::resource("/interrupts/{interrupt}/decision")
                .route(web::get().to(interrupt::back))
                .route(web::post().to(interrupt::submit)),
        )
        .service(
            web::resource("/replays")
                .app_data(
                    web::FormConfig::default()
                        .limit(STATE_FORM_BYTES_MAX)
                        .error_handler(|_, request| Failure::unreadable(request).into()),
                )
                .route(web::get().to(Shown(replays::show)))
                .route(web::post().to(replays::submit)),
        )
        .service(web::resource("/rejections").route(web::get().to(Shown(rejections::show))))
        .configure(past)
        .configure(people_routes)
        .configure(sending)
        .configure(stopping);
}

/// Where events are sent.
fn sending(cfg: &mut ServiceConfig) {
    let post = web::post;
    cfg.service(
        web::resource("/endpoints").route(web::get().to(Shown(endpoints::show))).route(post().to(endpoints::add)),
    )
    .service(web::resource("/endpoints/{endpoint}").route(web::get().to(Shown(endpoint::show))))
    .service(web::resource("/endpoints/{endpoint}/settings").route(post().to(endpoint::change)))
    .service(web::resource("/endpoints/{endpoint}/serving").route(post().to(endpoint::serve)))
    .service(web::resource("/endpoints/{endpoint}/secret").route(post().to(endpoint::rotate)))
    .service(web::resource("/endpoints/{endpoint}/test").route(post().to(endpoint::test)))
    .service(web::resource("/endpoints/{endpoint}/redeliveries").route(post().to(endpoint::redeliver)))
    .service(web::resource("/endpoints/{endpoint}/removal").route(post().to(endpoint::remove)))
    .service(web::resource("/endpoints/{endpoint}/deliveries/{delivery}").route(web::get().to(Shown(delivery::show))))
    .service(
        web::resource("/endpoints/{endpoint}/deliveries/{delivery}/redelivery").route(post().to(delivery::redeliver)),
    );
}

/// How all of it is stopped.
fn stopping(cfg: &mut ServiceConfig) {
    cfg.service(
        web::resource("/emergency").route(web::get().to(Shown(emergency::show))).route(web::post().to(emergency::stop)),
    )
    .service(
        web::resource("/emergency/lifting")
            .route(web::get().to(emergency::back))
            .route(web::post().to(emergency::lift)),
    );
}

/// What was.
fn past(cfg: &mut ServiceConfig) {
    cfg.service(web::resource("/threads").route(web::get().to(Shown(threads::show))))
        .service(web::resource("/imports").route(web::get().to(Shown(imports::show))))
        .service(web::resource("/threads/{thread}").route(web::get().to(thread::show)))
        .service(web::resource("/threads/{thread}/episode").route(web::get().to(Shown(episode::show))))
        .service(web::resource("/threads/{thread}/episode/{artefact}").route(web::get().to(episode::download)))
        .service(web::resource("/threads/{thread}/compare").route(web::get().to(Shown(compare::show))))
        .service(web::resource("/threads/{thread}/versions/{version}").route(web::get().to(Shown(version::show))))
        .service(
            web::resource("/threads/{thread}/versions/{version}/rollback")
                .route(web::get().to(rollback::back))
                .route(web::post().to(rollback::submit)),
        )
        .service(web::resource("/insight").route(web::get().to(Shown(insight::show))))
        .service(web::resource("/log").route(web::get().to(Shown(log::show))))
        .service(web::resource("/log.jsonl").route(web::get().to(log::download)))
        .service(web::resource("/log/{event}").route(web::get().to(Shown(log::show_event))))
        .service(
            web::resource("/verifier")
                .route(web::get().to(Shown(verifier::show)))
                .route(web::post().to(verifier::submit)),
        );
}

/// A review, and what is sent from its page.
fn of_reviews(cfg: &mut ServiceConfig) {
    let several = web::FormConfig::default().limit(SEVERAL_BYTES_MAX);
    cfg.service(
        web::resource("/votes")
            .app_data(several.error_handler(|_, request| Failure::unreadable(request).into()))
            .route(web::get().to(several::back))
            .route(web::post().to(several::submit)),
    )
    .service(web::resource("/reviews/{review}").route(web::get().to(Shown(review::show))))
    .service(
        web::resource("/reviews/{review}/decision")
            .route(web::get().to(review::back))
            .route(web::post().to(decision::submit)),
    )
    .service(
        web::resource("/reviews/{review}/revocation")
            .route(web::get().to(review::back))
            .route(web::post().to(revocation::submit)),
    )
    .service(
        web::resource("/reviews/{review}/withdrawal")
            .route(web::get().to(review::back))
            .route(web::post().to(withdrawal::submit)),
    )
    .service(
        web::resource("/reviews/{review}/extension")
            .route(web::get().to(review::back))
            .route(web::post().to(extension::submit)),
    )
    .service(
        web::resource("/reviews/{review}/comments")
            .route(web::get().to(review::back))
            .route(web::post().to(comments::submit)),
    )
    .service(
        web::resource("/reviews/{review}/edit").route(web::get().to(edit::show)).route(web::post().to(edit::submit)),
    )
    .service(
        web::resource("/reviews/{review}/reveal")
            .route(web::get().to(review::back))
            .route(web::post().to(reveal::submit)),
    );
}

/// People, tokens, and one's own account.
fn people_routes(cfg: &mut ServiceConfig) {
    let post = web::post;
    cfg.service(
        web::resource("/password/{secret}")
            .route(web::get().to(password::show))
            .route(web::post().to(password::submit)),
    )
    .service(web::resource("/people").route(web::get().to(Shown(people::show))))
    .service(web::resource("/people/invitations").route(web::get().to(people::back)).route(post().to(people::invite)))
    .service(web::resource("/people/links/{link}/withdrawal").route(post().to(people::withdraw)))
    .service(web::resource("/people/{account}").route(web::get().to(Shown(person::show))))
    .service(web::resource("/people/{account}/access").route(post().to(person::change_access)))
    .service(web::resource("/people/{account}/admission").route(post().to(person::admit)))
    .service(web::resource("/people/{account}/unlocking").route(post().to(person::unlock)))
    .service(web::resource("/people/{account}/passkeys").route(post().to(person::remove_passkeys)))
    .service(web::resource("/people/{account}/reset").route(post().to(person::reset)))
    .service(web::resource("/tokens").route(web::get().to(Shown(tokens::show))).route(post().to(tokens::add)))
    .service(web::resource("/tokens/{token}/revocation").route(post().to(tokens::revoke)))
    .service(
        web::resource("/delegations")
            .route(web::get().to(Shown(delegations::show)))
            .route(post().to(delegations::submit)),
    )
    .service(
        web::resource("/delegations/{delegation}/end")
            .route(web::get().to(delegations::back))
            .route(post().to(delegations::end)),
    )
    .service(web::resource("/account").route(web::get().to(Shown(account::show))))
    .service(web::resource("/account/password").route(post().to(account::change_password)))
    .service(web::resource("/account/contact").route(post().to(account::set_contact)))
    .service(web::resource("/account/sessions").route(post().to(account::end_sessions)));
}

/// What is seen without a session, and the way out.
fn ways_in(cfg: &mut ServiceConfig) {
    cfg.service(web::resource("/docs").route(web::get().to(reference::show)));
    cfg.service(web::resource("/sign-in").route(web::get().to(sign_in::show)).route(web::post().to(sign_in::submit)))
        .service(web::resource("/sign-in/oidc").route(web::get().to(sign_in::show)).route(web::post().to(oidc::submit)))
        .service(web::resource("/sign-in/oidc/return").route(web::get().to(oidc::come_back)))
        .service(web::resource("/sign-in/passkey").route(web::post().to(passkeys::sign_in)))
        .service(
            web::resource("/account/passkeys")
                .route(web::get().to(Shown(passkeys::show)))
                .route(web::post().to(passkeys::add)),
        )
        .service(
            web::resource("/account/passkeys/removal")
                .route(web::get().to(passkeys::back))
                .route(web::post().to(passkeys::remove)),
        )
        .service(
            web::resource("/sign-in/{secret}")
                .route(web::get().to(sign_in::show_link))
                .route(web::post().to(sign_in::use_link)),
        )
        .service(
            web::resource("/set-up/{secret}").route(web::get().to(set_up::show)).route(web::post().to(set_up::submit)),
        )
        .service(web::resource("/sign-out").route(web::post().to(sign_in::sign_out)));
}
