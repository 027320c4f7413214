use std::fs;

use countersign_adapters::mail::MailTls;

use super::*;

fn load(file: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    load_with(file, environment, Flags::default())
}

fn load_with(file: &str, environment: &[(&str, &str)], flags: Flags) -> Result<Config, ConfigError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    fs::write(&path, file).unwrap();
    let environment = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Config::load(&Flags { config: Some(path), ..flags }, environment)
}

fn line(error: &ConfigError) -> Option<usize> {
    match error.origin {
        ConfigOrigin::File { line, .. } => Some(line),
        _ => None,
    }
}

#[test]
fn the_default_file_parses_and_every_key_of_it_is_read() {
    let mut settings = ConfigLayers::defaults();
    Config::read(&mut settings).unwrap();
    assert_eq!(settings.unread(), Vec::<&str>::new());
}

#[test]
fn the_defaults_are_those_of_the_documentation() {
    let config = Config::default();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8480");
    assert_eq!(config.data, Path::new("./countersign-data"));
    assert!(matches!(config.database, DatabaseConfig::Sqlite));
    assert_eq!(config.public_url(config.listen).as_str(), "http://localhost:8480");
    assert_eq!(config.issuer, None);
    assert_eq!(config.trusted_proxies, []);
    assert!(matches!(&config.keyring, KeyringSource::File(it) if it == Path::new("./countersign-data/keyring.json")));
    assert_eq!((config.limits.body_bytes, config.limits.state_bytes), (1 << 20, 1 << 20));
    assert_eq!((config.limits.depth, config.limits.leaves), (64, 10_000));
    assert_eq!(config.log.format, LogFormat::Text);
    assert_eq!(config.log.level, tracing::Level::INFO);
}

#[test]
fn the_default_file_written_out_changes_nothing() {
    let config = load(DEFAULTS, &[]).unwrap();
    assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
}

#[test]
fn every_default_key_has_a_comment() {
    let (mut commented, mut keys) = (false, 0);
    for line in DEFAULTS.lines() {
        if line.contains(" = ") && !line.starts_with('#') {
            assert!(commented, "{line}");
            keys += 1;
        }
        // A comment holds for the lines right below it.
        commented = line.starts_with('#') || (commented && !line.is_empty() && !line.starts_with('['));
    }
    assert!(keys > 20);
}

#[test]
fn flags_override_the_environment_and_that_the_file() {
    let file = "listen = '127.0.0.1:1'\ndata = 'file'\n[limits]\ndepth = 1\n";
    let environment = [("COUNTERSIGN_LISTEN", "127.0.0.1:2"), ("COUNTERSIGN_LIMITS_DEPTH", "2")];
    let flags = Flags { listen: Some("127.0.0.1:3".parse().unwrap()), ..Flags::default() };
    let config = load_with(file, &environment, flags).unwrap();
    assert_eq!(config.listen.port(), 3);
    assert_eq!(config.limits.depth, 2);
    assert_eq!(config.data, Path::new("file"));
    assert_eq!(config.sqlite_path(), Path::new("file/countersign.db"));
}

#[test]
fn the_file_may_be_named_by_the_environment() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    fs::write(&path, "[limits]\ndepth = 7").unwrap();
    let environment = [(OsString::from("COUNTERSIGN_CONFIG"), path.clone().into_os_string())];
    assert_eq!(Config::load(&Flags::default(), environment).unwrap().limits.depth, 7);
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    for (file, key) in [
        ("\n\nlisen = 'x'\n", "lisen"),
        ("\n[limits]\ndeep = 3\n", "limits.deep"),
        ("\n\nlimits.more.depth = 3\n", "limits.more"),
        ("\n\nlimits = 3\n", "limits"),
        ("\n[listen]\nport = 3\n", "listen.port"),
        ("\n\n[other]\n", "other"),
    ] {
        let refused = load(file, &[]).unwrap_err();
        assert_eq!(refused.code, ConfigCode::UnknownKey, "{refused}");
        assert_eq!((refused.key.as_str(), line(&refused)), (key, Some(3)), "{refused}");
    }
    assert!(load("[limits]\n", &[]).is_ok());
}

#[test]
fn a_value_of_another_kind_is_refused_with_its_line() {
    for file in [
        "\nlisten = 8480",
        "\nlimits.depth = '64'",
        "\nlimits.depth = -1",
        "\nlimits.depth = 1.5",
        "\nlisten = true",
        "\ntrusted_proxies = '10.0.0.1'",
        "\ntrusted_proxies = [1]",
    ] {
        let refused = load(file, &[]).unwrap_err();
        assert_eq!((refused.code, line(&refused)), (ConfigCode::WrongType, Some(2)), "{refused}");
    }
}

#[test]
fn a_variable_that_is_no_key_is_refused_by_name() {
    for name in ["COUNTERSIGN_LISEN", "COUNTERSIGN_", "COUNTERSIGN_LIMITS", "COUNTERSIGN_TOKEN"] {
        let refused = load("", &[(name, "1")]).unwrap_err();
        assert_eq!((refused.code, refused.key.as_str()), (ConfigCode::UnknownVariable, name));
    }
}

#[test]
fn kubernetes_service_variables_are_ignored() {
    let mut environment = vec![("PATH".to_owned(), "/bin")];
    for service in ["COUNTERSIGN", "COUNTERSIGN_POSTGRES", "COUNTERSIGN_MAIL_PORT_2"] {
        for (name, value) in [
            ("SERVICE_HOST", "10.0.0.1"),
            ("SERVICE_PORT", "8480"),
            ("SERVICE_PORT_HTTPS", "8480"),
            ("PORT", "tcp://10.0.0.1:8480"),
            ("PORT_8480_TCP", "tcp://10.0.0.1:8480"),
            ("PORT_8480_TCP_PROTO", "tcp"),
            ("PORT_8480_TCP_PORT", "8480"),
            ("PORT_8480_TCP_ADDR", "10.0.0.1"),
            ("PORT_53_UDP", "udp://10.0.0.1:53"),
        ] {
            environment.push((format!("{service}_{name}"), value));
        }
    }
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    load("", &environment).unwrap();
}

#[test]
fn variables_that_only_resemble_service_links_are_refused() {
    for (name, value) in [
        ("COUNTERSIGN_PORT", "8480"),
        ("COUNTERSIGN_PORTAL", "tcp://10.0.0.1"),
        ("COUNTERSIGN_PORT_", "tcp://10.0.0.1"),
        ("COUNTERSIGN_PORT_8480", "tcp://10.0.0.1"),
        ("COUNTERSIGN_PORT_8480_TCP_HOST", "10.0.0.1"),
        ("COUNTERSIGN_PORT_HTTP_TCP", "10.0.0.1"),
        ("COUNTERSIGN_SERVICE_NAME", "gate"),
    ] {
        let refused = load("", &[(name, value)]).unwrap_err();
        assert_eq!((refused.code, refused.key.as_str()), (ConfigCode::UnknownVariable, name));
    }
}

#[test]
fn lists_come_from_the_environment_by_commas() {
    let config = load("", &[("COUNTERSIGN_TRUSTED_PROXIES", "10.0.0.7, 10.1.0.0/16,")]).unwrap();
    assert_eq!(config.trusted_proxies.len(), 2);
    let named = |address: &str| config.trusted_proxies.iter().any(|it| it.contains(address.parse().unwrap()));
    assert!(named("10.0.0.7") && named("10.1.2.3") && !named("10.2.2.3"));
}

#[test]
fn out_of_range_error_names_the_bounds_and_the_key() {
    let refused = load("", &[("COUNTERSIGN_LIMITS_DEPTH", "129")]).unwrap_err().to_string();
    let expected =
        "limits.depth (COUNTERSIGN_LIMITS_DEPTH): it must be a whole number from 1 to 120 [config_bad_value]";
    assert_eq!(refused, expected);
    assert!(load("limits.depth = 120", &[]).is_ok());
    assert!(load("limits.depth = 0", &[]).is_err());
}

#[test]
fn a_nodes_secret_overlaps_the_next_one_by_less_than_its_period() {
    let rotation = load("[envelopes]\nhmac_period_secs = 120\nhmac_overlap_secs = 119\n", &[]).unwrap().node_secrets;
    assert_eq!((rotation.period.as_secs(), rotation.overlap.as_secs()), (120, 119));
    assert_eq!(Config::default().node_secrets, Rotation::default(), "a day and an hour");
    for (period, overlap, key) in [
        (120, 120, "envelopes.hmac_overlap_secs"),
        (120, 3600, "envelopes.hmac_overlap_secs"),
        (120, 0, "envelopes.hmac_overlap_secs"),
        (0, 10, "envelopes.hmac_period_secs"),
        (31_536_000, 10, "envelopes.hmac_period_secs"),
    ] {
        let file = format!("[envelopes]\nhmac_period_secs = {period}\nhmac_overlap_secs = {overlap}\n");
        let refused = load(&file, &[]).unwrap_err();
        assert_eq!((refused.code, refused.key.as_str()), (ConfigCode::BadValue, key), "{period} {overlap}");
    }
}

#[test]
fn plain_http_for_remote_hosts_needs_a_tls_proxy() {
    let proxy = "\ntrusted_proxies = ['10.0.0.7']";
    let code = |file: String| load(&file, &[]).err().map(|it| (it.code, it.key));
    let refused = |key: &str| Some((ConfigCode::PlainHttp, key.to_owned()));
    for listen in ["0.0.0.0:8480", "[::]:8480", "192.168.1.2:80", "[::ffff:10.0.0.1]:80"] {
        let listen = format!("listen = '{listen}'");
        assert_eq!(code(listen.clone()), refused("listen"), "{listen}");
        assert_eq!(code(format!("{listen}\npublic_url = 'https://a.example'")), refused("listen"), "{listen}");
        assert_eq!(code(format!("{listen}{proxy}")), refused("public_url"), "{listen}");
        assert_eq!(
            code(format!("{listen}{proxy}\npublic_url = 'http://localhost'")),
            refused("public_url"),
            "{listen}"
        );
        assert_eq!(code(format!("{listen}{proxy}\npublic_url = 'https://a.example'")), None, "{listen}");
    }
    for listen in ["127.0.0.1:0", "[::1]:8480", "127.8.8.8:1"] {
        assert_eq!(code(format!("listen = '{listen}'")), None, "{listen}");
    }
}

#[test]
fn public_url_is_https_unless_it_is_localhost() {
    for (text, origin) in [
        ("https://gate.example", "https://gate.example"),
        ("https://GATE.example:443/", "https://gate.example"),
        ("https://gate.example:8443", "https://gate.example:8443"),
        ("http://localhost:8480", "http://localhost:8480"),
        ("http://[::1]:8480", "http://[::1]:8480"),
    ] {
        let url = load(&format!("public_url = '{text}'"), &[]).unwrap().public_url.unwrap();
        assert_eq!((url.as_str(), url.is_secure()), (origin, origin.starts_with("https")));
    }
    for (text, port) in [
        ("https://gate.example", None),
        ("https://gate.example:8443", Some(8443)),
        ("http://localhost:8480", Some(8480)),
        ("http://[::1]", None),
        ("http://[::1]:8480", Some(8480)),
    ] {
        assert_eq!(load(&format!("public_url = '{text}'"), &[]).unwrap().public_url.unwrap().port(), port, "{text}");
    }
    for text in [
        "gate.example",
        "http://gate.example",
        "http://localhost.example",
        "https://gate.example/path",
        "https://user@gate.example",
        "https://gate.example/?q",
        "ftp://localhost",
    ] {
        assert!(load(&format!("public_url = '{text}'"), &[]).is_err(), "{text}");
    }
}

#[test]
fn a_password_never_prints() {
    let secret = "hunter2";
    let url = format!("postgres://gate:{secret}@db/x");
    let config =
        load("", &[("COUNTERSIGN_DATABASE", &url), ("COUNTERSIGN_KEYRING", "{\"salt\": \"hunter2\"}")]).unwrap();
    assert!(matches!(&config.database, DatabaseConfig::Postgres(it) if it.expose() == &url));
    assert!(matches!(&config.keyring, KeyringSource::Given(_)));
    assert!(!format!("{config:?}").contains(secret));
    for file in [
        format!("database = 'mysql://gate:{secret}@db'"),
        format!("database = 'postgres://gate:{secret}"),
        format!("database = [\"{secret}\"]"),
        format!("public_url = 'https://gate:{secret}@host'"),
    ] {
        let refused = load(&file, &[]).unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains(secret), "{refused}");
    }
    let flags = Flags { database: Some(Secret::new(url)), ..Flags::default() };
    assert!(!format!("{flags:?}").contains(secret));
}

#[test]
fn keys_in_the_configuration_file_are_refused() {
    let refused = load("keyring = '{}'", &[]).unwrap_err();
    assert_eq!((refused.code, refused.key.as_str()), (ConfigCode::BadValue, "keyring"));
    assert!(matches!(load("keyring = 'k.json'", &[]).unwrap().keyring, KeyringSource::File(_)));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let flags = Flags { config: Some(PathBuf::from("/nowhere/c.toml")), ..Flags::default() };
    let refused = Config::load(&flags, []).unwrap_err();
    assert_eq!(refused.code, ConfigCode::Unreadable);
    assert!(refused.to_string().contains("/nowhere/c.toml"));
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_line() {
    let refused = load("listen = '127.0.0.1:1'\n\n== 3\n", &[]).unwrap_err();
    assert_eq!((refused.code, line(&refused)), (ConfigCode::Syntax, Some(3)), "{refused}");
    let twice = load("data = 'a'\ndata = 'b'\n", &[]).unwrap_err();
    assert_eq!((twice.code, line(&twice)), (ConfigCode::Syntax, Some(2)), "{twice}");
}

const PROVIDER: &str = "[oidc]\nissuer = 'https://id.example'\nclient_id = 'gate'\n";

#[test]
fn provider_is_read_with_its_claim_mapping() {
    assert!(Config::default().sign_in.oidc.is_none() && Config::default().sign_in.local_accounts);
    let file = format!(
        "local_accounts = false\n{PROVIDER}groups = ['cn=fin,dc=x=finance']\nroles = ['ops=admin', 'look=auditor']\n\
         admit = 'anybody'\nsession_secs = 60"
    );
    let environment = [("COUNTERSIGN_OIDC_CLIENT_SECRET", "hunter2"), ("COUNTERSIGN_OIDC_SCOPES", "profile,groups")];
    let sign_in = load(&file, &environment).unwrap().sign_in;
    assert!(!sign_in.local_accounts && !format!("{sign_in:?}").contains("hunter2"));
    let oidc = sign_in.oidc.unwrap();
    assert_eq!(oidc.client_secret.unwrap().expose(), "hunter2");
    assert_eq!(oidc.scopes, ["profile", "groups"]);
    let groups: Vec<_> = oidc.mapping.groups.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
    assert_eq!(groups, [("cn=fin,dc=x", "finance")]);
    assert_eq!(oidc.mapping.roles[0].1, countersign_domain::identity::account::PersonRole::Admin);
}

#[test]
fn invalid_provider_error_names_the_key() {
    for (file, key) in [
        ("local_accounts = false".to_owned(), "local_accounts"),
        ("local_accounts = 'no'".to_owned(), "local_accounts"),
        ("[oidc]\nissuer = 'http://id.example'".to_owned(), "oidc.issuer"),
        ("[oidc]\nissuer = 'https://id.example?x=y'".to_owned(), "oidc.issuer"),
        ("[oidc]\nissuer = 'https://me:pw@id.example'".to_owned(), "oidc.issuer"),
        ("[oidc]\nissuer = 'https://id.example'".to_owned(), "oidc.client_id"),
        (format!("{PROVIDER}groups = ['finance']"), "oidc.groups"),
        (format!("{PROVIDER}groups = ['=finance']"), "oidc.groups"),
        (format!("{PROVIDER}roles = ['ops=root']"), "oidc.roles"),
        (format!("{PROVIDER}admit = 'all'"), "oidc.admit"),
        (format!("{PROVIDER}button = ''"), "oidc.button"),
        (format!("{PROVIDER}client_secret_file = '/nowhere/secret'"), "oidc.client_secret_file"),
        (format!("{PROVIDER}ca_file = '/nowhere/ca.pem'"), "oidc.ca_file"),
        (format!("{PROVIDER}group = ['a=b']"), "oidc.group"),
    ] {
        assert_eq!(load(&file, &[]).unwrap_err().key, key, "{file}");
    }
}

#[test]
fn a_clients_secret_may_be_a_file_but_not_also_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    fs::write(&path, "hunter2\n").unwrap();
    let file = format!("{PROVIDER}client_secret_file = '{}'", path.display());
    let oidc = load(&file, &[]).unwrap().sign_in.oidc.unwrap();
    assert_eq!(oidc.client_secret.unwrap().expose(), "hunter2");
    let twice = load(&file, &[("COUNTERSIGN_OIDC_CLIENT_SECRET", "other")]).unwrap_err();
    assert_eq!(twice.key, "oidc.client_secret_file");
    assert!(!twice.to_string().contains("hunter2") && !twice.to_string().contains("other"));
    fs::write(&path, "\n").unwrap();
    assert!(load(&file, &[]).is_err());
}

#[test]
fn mail_needs_encryption_and_a_sender() {
    let mail = |text: &str| load(&format!("[mail]\nserver = \"mail.example\"\n{text}"), &[]);
    let from = "from = \"gate@example.org\"\n";
    let config = mail(from).unwrap().mail.unwrap();
    assert_eq!((config.port, config.tls, config.login.is_none()), (587, MailTls::StartTls, true));
    let refused = |text: &str| {
        let error = mail(text).unwrap_err();
        assert!(!error.to_string().contains("sesame"), "{error}");
        (error.key, error.code)
    };
    assert_eq!(refused(""), ("mail.from".to_owned(), ConfigCode::BadValue));
    assert_eq!(refused("from = \"gate\""), ("mail.from".to_owned(), ConfigCode::BadValue));
    let clear = refused(&format!("{from}tls = \"none\""));
    assert_eq!(clear, ("mail.tls".to_owned(), ConfigCode::PlainHttp));
    for here in ["127.0.0.1", "::1", "localhost"] {
        assert!(load(&format!("[mail]\nserver = \"{here}\"\ntls = \"none\"\n{from}"), &[]).is_ok(), "{here}");
    }
    for alone in ["user = \"gate\"", "password = \"sesame\""] {
        assert_eq!(refused(&format!("{from}{alone}")).1, ConfigCode::BadValue, "{alone}");
    }
    let both = mail(&format!("{from}user = \"gate\"\npassword = \"sesame\"")).unwrap();
    assert!(!format!("{both:?}").contains("sesame"));
}

#[test]
fn collector_authorization_needs_https() {
    let traces = |text: &str| load(&format!("[traces]\n{text}"), &[]);
    assert!(traces("").unwrap().traces.is_none());
    let far = "url = \"http://collector.example:4318/v1/traces\"\n";
    assert_eq!(traces(far).unwrap().traces.unwrap().percent, 100);
    let secret = "authorization = \"Bearer sesame\"\n";
    let error = traces(&format!("{far}{secret}")).unwrap_err();
    assert_eq!((error.key.as_str(), error.code), ("traces.url", ConfigCode::PlainHttp));
    for fine in ["https://collector.example/v1/traces", "http://localhost:4318/v1/traces", "http://[::1]/"] {
        let config = traces(&format!("url = \"{fine}\"\n{secret}")).unwrap();
        assert!(!format!("{config:?}").contains("sesame"));
    }
    for bad in ["collector.example", "ftp://collector.example/", "https://me:pass@collector.example/"] {
        assert!(traces(&format!("url = \"{bad}\"")).is_err(), "{bad}");
    }
    assert!(traces("percent = 101").is_err());
}
