use super::*;

#[test]
fn replaced_but_unsynced_file_exits_with_2() {
    let guard = StateGuard::new(br#"{"type":"null"}"#, None).unwrap();
    for form in [OutputFormat::Text, OutputFormat::Json] {
        let state = guard.check(b"null").unwrap();
        let committed = Box::new(WrittenState { path: "/states/a.json".into(), bytes: 4, previous: None, state });
        let verdict = GuardResult::Unsynced { committed, cause: io::Error::other("no space") };
        let mut said = Vec::new();
        let exit = tell(guard.dialect(), verdict, &mut CommandOutput::new(form, &mut said)).unwrap();
        assert_eq!(exit, CommandExit::CouldNotTell);
        let said = String::from_utf8(said).unwrap();
        if form == OutputFormat::Text {
            assert!(said.starts_with("could not tell: the file was replaced, but"), "{said}");
            assert!(said.ends_with("/states/a.json: 4 bytes\nno space\n"), "{said}");
            continue;
        }
        let answer: Value = serde_json::from_str(&said).unwrap();
        for (name, value) in [
            ("verdict", "could_not_tell"),
            ("code", "unsynced"),
            ("cause", "no space"),
            ("committed_path", "/states/a.json"),
            ("dialect", "guard"),
        ] {
            assert_eq!(answer[name], value);
        }
        assert_eq!(answer["verified"], false);
    }
}
