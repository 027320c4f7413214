use countersign_domain::primitives::id::FlowId;

use super::values::digest;
use super::*;

fn read(line: &str) -> Result<Args, clap::Error> {
    Args::read(std::iter::once("countersign").chain(line.split_whitespace()).map(OsString::from))
}

fn command(line: &str) -> Command {
    read(line).unwrap_or_else(|refused| panic!("{line}: {refused}")).command
}

#[test]
fn the_parser_is_sound() {
    Args::command().debug_assert();
}

#[test]
fn every_command_of_the_documentation_is_read() {
    for line in [
        "serve",
        "serve --listen 127.0.0.1:0 --data d --config c.toml",
        "demo",
        "health",
        "user add alice --role reviewer --group finance --group security --password-stdin",
        "user add root --role admin --password-stdin",
        "token add planner --role agent --owner alice --flow payments --node planner --node input_parser",
        "token add app --role host --owner alice --flow payments",
        "token add db --role writer --owner ops --flow payments --node database_writer",
        "token add eye --role auditor --owner alice",
        "token add eye --role auditor --owner alice --flow payments",
        "token list",
        "token revoke 01a1b2c3",
        "user disable alice",
        "user enable alice",
        "policy check payments.toml",
        "policy activate payments.toml",
        "verify a.b.c --jwks jwks.json",
        "verify receipt.jws --jwks jwks.json --entry a.b.c --statement s.json --opening o.json",
        "audit",
        "audit --data d",
        "audit --export d",
        "keys list",
        "keys rotate",
        "keys revoke kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
        "receipt revoke AAECAwQFBgcICQoLDA0ODw",
        "thread close t-1",
        "thread reopen t-1 --reason again",
        "halt set all --reason fire",
        "halt set payments --only verifying",
        "halt lift all",
        "archive list",
        "archive list t-1 --json",
        "archive verify a.json.gz b.json.gz --jwks jwks.json",
        "archive restore t-1",
        "migrate",
    ] {
        command(line);
    }
}

#[test]
fn global_flags_are_accepted_anywhere() {
    let flags = ["--json", "--data", "d", "--config", "c", "--database", "postgres://u@h/d"];
    for (before, between, after) in
        [("", "", "keys list FLAGS"), ("", "keys FLAGS list", ""), ("FLAGS keys list", "", "")]
    {
        let line = [before, between, after].concat().replace("FLAGS", &flags.join(" "));
        let args = read(&line).unwrap();
        assert!(args.global.json, "{line}");
        let flags = args.flags();
        assert_eq!((flags.data, flags.config), (Some(PathBuf::from("d")), Some(PathBuf::from("c"))), "{line}");
        assert_eq!(flags.database.unwrap().expose(), "postgres://u@h/d", "{line}");
    }
    assert!(read("--json thread --data d close t-1 --config c").unwrap().global.json);
}

#[test]
fn usage_error_exits_with_2() {
    for line in ["policy what-if f --state s --node n", "policy what-if f --state s --patch p --node n --format x"] {
        assert_eq!(read(line).unwrap_err().exit_code(), 2, "{line}");
    }
    for line in ["", "serv", "serve --listen nowhere", "keys rotate all", "user add bob --role host --password-stdin"] {
        assert_eq!(read(line).unwrap_err().exit_code(), 2, "{line}");
    }
    for line in ["--help", "--version", "keys list --help"] {
        assert_eq!(read(line).unwrap_err().exit_code(), 0, "{line}");
    }
}

#[test]
fn a_password_is_never_an_argument() {
    assert!(read("user add bob --role reviewer").is_err());
    assert!(read("user add bob --role reviewer --password hunter2").is_err());
}

#[test]
fn token_needs_exactly_the_flags_of_its_role() {
    for line in [
        "token add x --role agent --owner a --node n",
        "token add x --role agent --owner a --flow f",
        "token add x --role host --owner a",
        "token add x --role host --owner a --flow f --node n",
        "token add x --role instance --owner a --flow f",
        "token add x --role instance --owner a --flow f --node n --node m",
        "token add x --role instance --owner a --node n",
        "token add x --role writer --owner a --flow f",
        "token add x --role writer --owner a --flow f --node n --node m",
        "token add x --role auditor --owner a --node n",
        "token add x --role root --owner a",
        "token add x --role agent --flow f --node n",
    ] {
        assert!(read(line).is_err(), "{line}");
    }
}

#[test]
fn ids_that_begin_with_a_dash_are_accepted() {
    for next in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-".chars() {
        let kid = format!("-{next}rK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        for line in [format!("keys revoke {kid} --json"), format!("keys revoke --json {kid}")] {
            let args = read(&line).unwrap();
            assert!(args.global.json, "{line}");
            assert!(matches!(args.command, Command::Keys(KeysCommand::Revoke(it)) if it.kid == kid), "{line}");
        }
        let jti = format!("-{next}rK_qmxVWaYVA9wwBF6Iw");
        let line = format!("receipt revoke {jti} --reason mine");
        assert!(
            matches!(command(&line), Command::Receipt(ReceiptCommand::Revoke(it)) if it.jti.as_str() == jti),
            "{line}"
        );
    }
}

#[test]
fn a_receipt_is_itself_a_file_or_standard_input() {
    for (text, expected) in [
        ("-", InputSource::Stdin),
        ("eyJ.eyJ.AA-_", InputSource::Given("eyJ.eyJ.AA-_".to_owned())),
        ("./a.b.c", InputSource::File("./a.b.c".into())),
        ("receipt.jws", InputSource::File("receipt.jws".into())),
        ("a..c", InputSource::File("a..c".into())),
    ] {
        assert_eq!(input(text), Ok(expected));
    }
}

#[test]
fn a_halt_is_for_a_flow_or_for_all() {
    assert_eq!(scope("all"), Ok(HaltScopeArg::All));
    assert_eq!(scope("payments"), Ok(HaltScopeArg::Flow(FlowId::try_from("payments").unwrap())));
    assert!(scope("not a flow").is_err());
}

#[test]
fn one_line_does_not_become_two() {
    assert!(label("a\nb").is_err());
    assert!(label(" ").is_err());
    assert!(label(&"x".repeat(201)).is_err());
    assert!(label("Zoë & co").is_ok());
}

#[test]
fn a_digest_and_a_moment_have_one_spelling() {
    assert!(digest(&format!("sha256:{}", "0a".repeat(32))).is_ok());
    for bad in [format!("sha256:{}", "0A".repeat(32)), format!("sha256:{}", "0a".repeat(31)), "0a".repeat(32)] {
        assert!(digest(&bad).is_err(), "{bad}");
    }
    assert!(moment("2026-11-21T01:36:40.123Z").is_ok());
    assert!(moment("2026-11-21").is_err());
}

#[test]
fn demo_refuses_the_data_flags() {
    for line in ["demo --data d", "--data d demo", "demo --database postgres://u@h/d"] {
        let refused = read(line).unwrap_err();
        assert_eq!(refused.exit_code(), 2, "{line}");
        assert!(refused.to_string().contains("its own temporary directory"), "{line}: {refused}");
    }
    assert!(read("demo --listen 127.0.0.1:0 --config c").is_ok());
}
