//! Which URLs are accepted, and which addresses are public. These tests send no request.

use std::net::IpAddr;

use super::*;
use crate::http_client::ssrf_guard::is_public;

#[test]
fn private_address_is_refused_in_every_spelling() {
    let outgoing = outgoing(settings(&[]));
    for host in [
        // Loopback, in the spellings of the URL standard.
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "127.255.255.254",
        "2130706433",
        "0x7f000001",
        "0X7F.1",
        "0177.0.0.1",
        "0177.0x0.0.01",
        "017700000001",
        "127.0.0.1.",
        "127.1.",
        "%31%32%37.0.0.1",
        "127%2e0.0.1",
        "127.0.0.%31",
        "１２７.０.０.１",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "127．0．0．1",
        "0x7f．１",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[0000:0000::0001]",
        "[::0.0.0.1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "ｌｏｃａｌｈｏｓｔ",
        "local%68ost",
        "gate.localhost",
        "a.b.localhost.",
        // The unspecified address.
        "0.0.0.0",
        "0",
        "0.1.2.3",
        "[::]",
        // Private, link-local, metadata.
        "10.0.0.1",
        "167772161",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "0xc0a80101",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "169.254.43518",
        "0251.0376.0251.0376",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fec0::1]",
        "[fc00::1]",
        "[fdff::1]",
        "100.64.0.1",
        "100.127.255.255",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        // Reserved, documentation, benchmarks, multicast.
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "198.18.0.1",
        "198.19.255.255",
        "192.88.99.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "4294967295",
        "[ff02::1]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[100::1]",
        "[5f00::1]",
        "[2001:2::1]",
        "[2001:10::1]",
        // Wrapped IPv4, public or not.
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::FFFF:10.0.0.1]",
        "[::ffff:93.184.216.34]",
        "[::127.0.0.1]",
        "[::93.184.216.34]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::5db8:d822]",
        "[64:ff9b:1::a00:1]",
        "[2002:7f00:1::]",
        "[2002:5db8:d822::1]",
        "[2001:0:5db8:d822::1]",
        "[2001::1]",
    ] {
        for rest in ["", "/hook", ":8443/hook?x=y"] {
            let url = format!("https://{host}{rest}");
            assert_eq!(outgoing.admits(&url), Err(UrlRejected::Inside), "{url}");
        }
    }
}

#[test]
fn the_first_and_the_last_address_of_each_range_are_refused_and_their_neighbours_are_not() {
    for (first, last, before, behind) in [
        ("0.0.0.0", "0.255.255.255", None, Some("1.0.0.0")),
        ("10.0.0.0", "10.255.255.255", Some("9.255.255.255"), Some("11.0.0.0")),
        ("100.64.0.0", "100.127.255.255", Some("100.63.255.255"), Some("100.128.0.0")),
        ("127.0.0.0", "127.255.255.255", Some("126.255.255.255"), Some("128.0.0.0")),
        ("168.63.129.16", "168.63.129.16", Some("168.63.129.15"), Some("168.63.129.17")),
        ("169.254.0.0", "169.254.255.255", Some("169.253.255.255"), Some("169.255.0.0")),
        ("172.16.0.0", "172.31.255.255", Some("172.15.255.255"), Some("172.32.0.0")),
        ("192.0.0.0", "192.0.0.255", Some("191.255.255.255"), Some("192.0.1.0")),
        ("192.0.2.0", "192.0.2.255", Some("192.0.1.255"), Some("192.0.3.0")),
        ("192.88.99.0", "192.88.99.255", Some("192.88.98.255"), Some("192.88.100.0")),
        ("192.168.0.0", "192.168.255.255", Some("192.167.255.255"), Some("192.169.0.0")),
        ("198.18.0.0", "198.19.255.255", Some("198.17.255.255"), Some("198.20.0.0")),
        ("198.51.100.0", "198.51.100.255", Some("198.51.99.255"), Some("198.51.101.0")),
        ("203.0.113.0", "203.0.113.255", Some("203.0.112.255"), Some("203.0.114.0")),
        ("224.0.0.0", "255.255.255.255", Some("223.255.255.255"), None),
        ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", None, None),
        ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", Some("2000:ffff::1"), Some("2001:200::")),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Some("2001:db7:ffff::"), Some("2001:db9::")),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("2001:ffff::"), Some("2003::")),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", Some("3ffe:ffff::"), Some("3fff:1000::")),
        ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some("3fff:ffff::"), None),
    ] {
        let public = |text: &str| is_public(text.parse::<IpAddr>().unwrap());
        assert!(!public(first) && !public(last), "{first} to {last}");
        assert!(before.into_iter().chain(behind).all(public), "around {first} to {last}");
    }
}

#[test]
fn public_address_is_accepted_and_normalized() {
    let outgoing = outgoing(settings(&[]));
    for (typed, read) in [
        ("https://hooks.example.com/x?y=z", "https://hooks.example.com/x?y=z"),
        ("HTTPS://Hooks.Example.com:443", "https://hooks.example.com/"),
        ("https://93.184.216.34:8443/", "https://93.184.216.34:8443/"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://notlocalhost/", "https://notlocalhost/"),
        ("https://localhost.example/", "https://localhost.example/"),
    ] {
        assert_eq!(outgoing.admits(typed).map(String::from), Ok(read.to_owned()), "{typed}");
    }
}

#[test]
fn allowed_network_is_reached_by_http_and_https() {
    let outgoing = outgoing(settings(&["10.1.0.0/16", "fd00::1", "127.0.0.1"]));
    for host in ["10.1.2.3", "[::ffff:10.1.2.3]", "[fd00::1]", "127.1", "localhost", "x.localhost", "hooks.example"] {
        for scheme in ["https", "http"] {
            assert!(outgoing.admits(&format!("{scheme}://{host}/")).is_ok(), "{scheme} {host}");
        }
    }
    for host in ["10.2.0.0", "[fd00::2]", "127.0.0.2", "[::1]", "169.254.169.254"] {
        assert_eq!(outgoing.admits(&format!("https://{host}/")), Err(UrlRejected::Inside), "{host}");
        assert_eq!(outgoing.admits(&format!("http://{host}/")), Err(UrlRejected::PlainHttp), "{host}");
    }
}

#[test]
fn plain_http_needs_configuration() {
    let (strict, open) = (settings(&[]), HttpClientSettings { plain_http: true, ..settings(&[]) });
    for host in ["hooks.example", "93.184.216.34", "localhost", "127.0.0.1"] {
        assert_eq!(outgoing(strict.clone()).admits(&format!("http://{host}/")), Err(UrlRejected::PlainHttp), "{host}");
    }
    let open = outgoing(open);
    assert!(open.admits("http://hooks.example/").is_ok() && open.admits("http://93.184.216.34/").is_ok());
    assert_eq!(open.admits("http://127.0.0.1/"), Err(UrlRejected::Inside));
    assert_eq!(open.admits("http://localhost/"), Err(UrlRejected::Inside));
}

#[test]
fn invalid_url_is_refused_with_a_reason() {
    let outgoing = outgoing(settings(&[]));
    let long = format!("https://hooks.example/{}", "x".repeat(URL_BYTES_MAX));
    let grown = format!("https://hooks.example/{}", "ü".repeat(URL_BYTES_MAX / 4));
    let shrunk = format!("https://hooks.example/{}", "x/../".repeat(URL_BYTES_MAX));
    for (url, refused) in [
        ("", UrlRejected::NotAnAddress),
        ("hooks.example", UrlRejected::NotAnAddress),
        ("https://", UrlRejected::NotAnAddress),
        ("https://[fe80::1%25eth0]/", UrlRejected::NotAnAddress),
        ("https://[fe80::1%eth0]/", UrlRejected::NotAnAddress),
        ("https://1.2.3.4.5/", UrlRejected::NotAnAddress),
        ("https://256.1.1.1/", UrlRejected::NotAnAddress),
        ("https://hooks.example:65536/", UrlRejected::NotAnAddress),
        ("https://hooks.exa\tmple/", UrlRejected::NotAnAddress),
        (" https://hooks.example/", UrlRejected::NotAnAddress),
        ("https://hooks.example/\r\nX: y", UrlRejected::NotAnAddress),
        ("https:\\\\hooks.example/", UrlRejected::NotAnAddress),
        ("https://hooks.example:0/", UrlRejected::Port),
        ("ftp://hooks.example/", UrlRejected::Scheme),
        ("file:///etc/passwd", UrlRejected::Scheme),
        ("gopher://127.0.0.1:25/", UrlRejected::Scheme),
        ("https://me@hooks.example/", UrlRejected::UserInfo),
        ("https://:pw@hooks.example/", UrlRejected::UserInfo),
        ("https://hooks.example@127.0.0.1/", UrlRejected::UserInfo),
        ("https://hooks.example/#x", UrlRejected::Fragment),
        (&long, UrlRejected::TooLong),
        (&grown, UrlRejected::TooLong),
        (&shrunk, UrlRejected::TooLong),
    ] {
        assert_eq!(outgoing.admits(url), Err(refused), "{url}");
        assert!(!refused.to_string().is_empty());
    }
}

#[test]
fn framing_headers_cannot_be_set() {
    for name in ["Host", "content-length", "Transfer-Encoding", "connection", "Keep-Alive", "TE", "Expect", "upgrade"] {
        assert!(!admits_header(name, "x"), "{name}");
    }
    for (name, value) in [("", "x"), ("a b", "x"), ("a:b", "x"), ("x", "a\r\nHost: b"), ("x\n", "a"), ("x", "\u{0}")] {
        assert!(!admits_header(name, value), "{name:?} {value:?}");
    }
    assert!(admits_header("Authorization", "Bearer x") && admits_header("x-team", "payments"));
}

#[test]
fn failure_code_equals_the_stored_text() {
    for code in FailureCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        assert!(code.sentence().ends_with('.'));
    }
}
