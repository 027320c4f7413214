//! `static/js/recompute.js` in a real browser, against commitments made in Rust.

use askama::Template;
use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;

use super::sample::SampleReview;
use super::screens;
use super::site::PageTestSite;

/// Serves `html` with one replacement, and returns the result of the script.
async fn altered(site: &PageTestSite, html: &str, what: &str, by: &str) -> super::site::PageCheckResult {
    assert!(html.contains(what), "the page holds {what}");
    site.put("/altered", html.replacen(what, by, 1));
    site.visit("/altered").await;
    site.verdict("").await
}

#[actix_web::test]
async fn what_is_shown_as_it_was_signed_matches() {
    let mut site = PageTestSite::open().await;
    let pages = [
        SampleReview::small().page(),
        SampleReview::rich().page(),
        SampleReview::reaffirm().page(),
        screens::decided(),
        screens::doubtful(),
        screens::own_agent(),
    ];
    for (number, page) in pages.iter().enumerate() {
        site.put("/review", page.render().unwrap());
        for (width, height) in [(1280, 900), (390, 844), (320, 568)] {
            site.resize(width, height).await;
            site.visit("/review").await;
            let said = site.verdict("").await;
            assert!(said.matches(), "page {number} at {width}: {said:?}");
        }
    }
    site.put("/review", SampleReview::rich().page().render().unwrap());
    site.visit("/review").await;
    let _: u32 = site.js("(document.querySelectorAll('details').forEach((it) => (it.open = true)), 1)").await;
    let _: bool = site.js("(document.querySelector('button.approve').click(), true)").await;
    assert!(site.next_post().await.contains("browser_check=match"), "what was unfolded is still what was signed");
    site.close().await;
}

#[actix_web::test]
async fn an_altered_value_is_a_mismatch_and_disables_deciding() {
    let site = PageTestSite::open().await;
    let small = SampleReview::small().page().render().unwrap();
    let digest = SampleReview::small().page().proof.digest.whole().to_owned();
    let in_cell = |value: &str| format!("\">{value}</div>");
    for (what, by) in [
        // In the sentence, in what the writer reads, in the table of changes.
        (">42</code>".to_owned(), ">43</code>".to_owned()),
        (in_cell("42"), in_cell("43")),
        (in_cell("17"), in_cell("18")),
        (in_cell("120"), in_cell("12")),
        (in_cell("120"), in_cell("120.0")),
        (in_cell("&#34;refund&#34;"), in_cell("&#34;reFund&#34;")),
        // Another place, another node, another reason to believe it.
        ("data-pointer>target_<wbr>user_<wbr>id<".to_owned(), "data-pointer>target_<wbr>user_<wbr>name<".to_owned()),
        ("data-pointer>payment.<wbr>amount<".to_owned(), "data-pointer>payment.<wbr>total<".to_owned()),
        ("data-statement=\"node\">planner<".to_owned(), "data-statement=\"node\">auditor<".to_owned()),
        ("belongs to user 42".to_owned(), "belongs to user 43".to_owned()),
        // The tool, and what it is called with.
        ("data-tool>lookup<".to_owned(), "data-tool>search<".to_owned()),
        ("data-value>&#34;user 42&#34;<".to_owned(), "data-value>&#34;user 43&#34;<".to_owned()),
        ("data-value>&#34;user 42&#34;<".to_owned(), "data-value hidden>&#34;user 42&#34;<".to_owned()),
        ("data-pointer>to<".to_owned(), "data-pointer>from<".to_owned()),
        ("<tr role=\"row\" data-argument>".to_owned(), "<tr role=\"row\">".to_owned()),
        ("data-tool>lookup<".to_owned(), ">lookup<".to_owned()),
        // The statement, the digest, the form.
        ("data-value>4</div>".to_owned(), "data-value>5</div>".to_owned()),
        ("data-value>&#34;tok_3f9a&#34;<".to_owned(), "data-value>&#34;tok_3f9b&#34;<".to_owned()),
        (format!("data-digest aria-labelledby=\"digest-label\">{digest}"), "data-digest>sha256:00".to_owned()),
        (format!("name=\"digest\" value=\"{digest}\""), format!("name=\"digest\" value=\"sha256:{}\"", "0".repeat(64))),
        // Data that readers do not see.
        ("data-salt=\"".to_owned(), "data-salt=\"A".to_owned()),
        ("data-side=\"both\" data-bare=\"sha256:".to_owned(), "data-side=\"both\" data-bare=\"sha256:0".to_owned()),
        ("data-arrays-to=\"[]\"".to_owned(), "data-arrays-to=\"[&#34;/payment&#34;]\"".to_owned()),
    ] {
        let said = altered(&site, &small, &what, &by).await;
        assert!(said.refuses(), "{what} by {by}: {said:?}");
    }
    let rich = SampleReview::rich().page().render().unwrap();
    for (what, by) in [
        // Lookalike characters, another escape, text instead of an escape, and the start of a folded value.
        ("p\u{430}yp\u{430}l", "paypal"),
        (">\\u202e</span>", ">\\u202d</span>"),
        ("<span class=\"esc\" title=\"right-to-left override\">U+202E</span>", "U+202E"),
        ("class=\"fold-head\">&#34;Ignore", "class=\"fold-head\">&#34;Honour"),
        ("data-whole>&#34;Ignore", "data-whole>&#34;Honour"),
        ("data-absent>nothing", "data-nested>nothing"),
        ("data-nested>several values, below", "data-nested>false"),
        ("data-absent>nothing", "data-absent>17"),
        // A claim about a path without a commitment.
        ("data-nested>several values, below", "data-absent>nothing"),
        ("data-absent>nothing", "data-nested>several values, below"),
        (
            "<tr role=\"row\" data-fact>",
            "<tr role=\"row\" data-fact><th><code data-key>node</code></th><td><div class=\"value\" data-value>&#34;auditor&#34;</div></td></tr>\
             <tr role=\"row\" data-fact>",
        ),
        (">redacted</span> <span class=\"badge care\">changes now", ">4</span> <span class=\"badge care\">changes now"),
        // Changes that are folded away or listed as unchanged.
        ("<table class=\"diff\"", "<details><summary>more</summary><table class=\"diff\""),
        (
            "<table class=\"diff\"",
            "<details class=\"unchanged\" data-unchanged><summary>more</summary><table class=\"diff\"",
        ),
        ("data-row=\"change\"", "data-row=\"same\""),
        ("data-row=\"change\"", "data-row=\"mention\""),
        ("data-row=\"same\"", "data-row=\"change\""),
    ] {
        let said = altered(&site, &rich, what, by).await;
        assert!(said.refuses(), "{what} by {by}: {said:?}");
    }
    site.close().await;
}

#[actix_web::test]
async fn a_row_that_is_missing_is_a_mismatch() {
    let site = PageTestSite::open().await;
    let rich = SampleReview::rich().page().render().unwrap();
    site.put("/review", rich.as_str());
    site.visit("/review").await;
    assert!(site.verdict("").await.matches());
    let names: Vec<String> =
        site.js("[...document.querySelectorAll('.diff tr[data-row]')].map((it) => it.querySelector('[data-pointer]').textContent)").await;
    assert_eq!(names.len(), 13);
    let mut rows = 0;
    for (start, _) in rich.match_indices("<tr role=\"row\" data-row=") {
        let end = start + rich[start..].find("</tr>").unwrap() + "</tr>".len();
        site.put("/review", format!("{}{}", &rich[..start], &rich[end..]));
        site.visit("/review").await;
        let said = site.verdict("").await;
        assert!(said.refuses(), "{}: {said:?}", &rich[start..end]);
        rows += 1;
    }
    assert!(rows > names.len() + 4, "what a writer reads and what does not change have rows too");
    site.close().await;
}

#[actix_web::test]
async fn a_row_that_cannot_be_seen_is_a_mismatch() {
    let site = PageTestSite::open().await;
    let html = SampleReview::rich().page().render().unwrap();
    let html = html.replace("</head>", "<link rel=\"stylesheet\" href=\"/hide.css\"></head>");
    site.put("/review", html);
    let row = ".diff tr:has([data-side=from][data-salt]):nth-child(2)";
    for rule in [
        format!("{row} {{ display: none }}"),
        format!("{row} {{ visibility: hidden }}"),
        format!("{row} {{ opacity: 0.05 }}"),
        format!("{row} .value {{ display: none }}"),
        format!("{row} .after {{ visibility: collapse }}"),
        format!("{row} .value {{ font-size: 7px }}"),
        format!("{row} .value {{ color: transparent }}"),
        format!("{row} .value {{ color: rgb(1 2 3 / 10%) }}"),
        format!("{row} .value {{ -webkit-text-fill-color: transparent }}"),
        format!("{row} .value {{ color: #fff; background: #fff }}"),
        format!("{row} .value {{ position: absolute; left: -9999px }}"),
        format!("{row} .value {{ position: fixed; top: -500px }}"),
        format!("{row} .value {{ text-indent: -9999px }}"),
        format!("{row} .value {{ width: 0; height: 0; overflow: hidden }}"),
        format!("{row} td {{ position: absolute; width: 1px; height: 1px; overflow: hidden }}"),
        format!("{row} .value {{ clip-path: inset(50%) }}"),
        format!("{row} .value {{ position: absolute; clip: rect(0 0 0 0) }}"),
        format!("{row} .value {{ transform: scale(0) }}"),
        format!("{row} {{ filter: blur(9px) }}"),
        format!("{row} .value {{ mask-image: linear-gradient(transparent, transparent) }}"),
        format!("{row} .value {{ content-visibility: hidden; height: 2rem }}"),
        format!("{row} .value {{ -webkit-text-security: disc }}"),
        format!("{row} .value {{ direction: rtl; unicode-bidi: bidi-override }}"),
        format!("{row} .value::after {{ content: '0' }}"),
        format!("{row} [data-pointer] {{ display: none }}"),
        format!("{row} [data-pointer]::before {{ content: 'not_' }}"),
        ".diff .esc { display: none }".to_owned(),
        ".value { text-transform: uppercase }".to_owned(),
        ".headline .chip { opacity: 0 }".to_owned(),
        ".reads tr { display: none }".to_owned(),
        ".rationale { display: none }".to_owned(),
        ".statement tr:nth-child(3) { display: none }".to_owned(),
        ".changes { display: none }".to_owned(),
        ".changes .card { height: 4rem; overflow: hidden }".to_owned(),
        "[data-digest] { display: none !important }".to_owned(),
        ".unchanged { display: none }".to_owned(),
    ] {
        site.put("/hide.css", rule.as_str());
        site.visit("/review").await;
        let said = site.verdict("").await;
        assert!(said.refuses(), "{rule}: {said:?}");
    }
    site.put("/hide.css", "/* nothing */");
    site.visit("/review").await;
    assert!(site.verdict("").await.matches(), "the sheet itself changes nothing");
    site.close().await;
}

#[actix_web::test]
async fn without_the_script_or_a_secure_context_nothing_is_claimed() {
    let site = PageTestSite::open().await;
    let html = SampleReview::small().page().render().unwrap();
    site.put("/review", html.as_str());
    site.visit_plain("/review").await;
    let _: bool = site.js("new Promise((done) => setTimeout(() => done(true)))").await;
    let said = site.said().await;
    assert!(said.claims_nothing() && said.enabled == 2, "{said:?}");
    let dropped = html.lines().filter(|it| !it.starts_with("<script")).collect::<Vec<_>>().join("\n");
    site.put("/dropped", dropped);
    site.visit("/dropped").await;
    assert!(site.said().await.claims_nothing());
    site.page.execute(SetScriptExecutionDisabledParams::new(true)).await.unwrap();
    site.visit("/review").await;
    let said = site.said().await;
    assert!(said.claims_nothing() && said.enabled == 2, "{said:?}");
    assert!(
        !site.js::<String>("document.querySelector('.check').textContent").await.to_lowercase().contains("checked")
    );
    site.close().await;
}

#[actix_web::test]
async fn what_changes_after_the_page_opened_is_noticed_before_it_is_sent() {
    let mut site = PageTestSite::open().await;
    site.put("/review", SampleReview::small().page().render().unwrap());
    site.visit("/review").await;
    assert!(site.verdict("").await.matches());
    let _: bool = site
        .js("(document.querySelector('.diff .after .value').textContent = '17', document.querySelector('button.approve').click(), true)")
        .await;
    let said = site.verdict("match").await;
    assert!(said.refuses(), "{said:?}");
    assert!(site.nothing_posted());

    site.visit("/review").await;
    assert!(site.verdict("").await.matches());
    let _: bool = site.js("(document.querySelector('button.deny').click(), true)").await;
    let posted = site.next_post().await;
    for field in [
        "verdict=deny",
        "browser_check=match",
        "csrf=csrf-1",
        "nonce=nonce-1",
        "stage=0",
        "comment=",
        "digest=sha256%3A",
    ] {
        assert!(posted.contains(field), "{field} in {posted}");
    }
    site.close().await;
}

#[actix_web::test]
async fn the_first_screen_of_a_phone_says_what_and_why_and_offers_both_verdicts() {
    let site = PageTestSite::open().await;
    site.resize(390, 844).await;
    for case in [SampleReview::small(), SampleReview::rich()] {
        site.put("/review", case.page().render().unwrap());
        site.visit("/review").await;
        for selector in
            [".headline", ".reasons", ".facts > :nth-child(2)", ".facts time", ".reads caption", ".approve", ".deny"]
        {
            let place = format!(
                "(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect();
                    return box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth && box.height > 0; }})()"
            );
            assert!(site.js::<bool>(&place).await, "{selector}");
        }
        let sentence: String = site.js("document.querySelector('.headline').innerText.replace(/\\s+/g, ' ')").await;
        assert!(
            sentence.starts_with("planner wants to change ") && sentence.contains("target_user_id: 17 →"),
            "{sentence}"
        );
        assert!(
            site.js::<bool>("document.documentElement.scrollWidth <= innerWidth").await,
            "nothing scrolls sideways"
        );
        let small: Vec<String> = site
            .js("[...document.querySelectorAll('button, .brand, .top-nav a, summary, textarea')]
                    .filter((it) => it.checkVisibility() && it.getBoundingClientRect().height < 44).map((it) => it.outerHTML)")
            .await;
        assert_eq!(small, Vec::<String>::new(), "targets are 44 px high");
    }
    site.close().await;
}
