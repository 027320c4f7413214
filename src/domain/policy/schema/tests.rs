use super::*;

#[test]
fn x() {
    for s in [r##"{"$ref":"#"}"##, r##"{"properties":{"a":{"$ref":"#"}}}"##] {
        let r = SchemaSource::file("s", s).unwrap().compile(Openness::AsWritten);
        eprintln!("{r:?}");
    }
}
