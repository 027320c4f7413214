use proptest::prelude::*;
use serde_json::json;

use super::{canonical, string_len, write_string};
use crate::json::parse::{ParseLimits, parse};
use crate::json::samples::any_value;

#[test]
fn doubles_are_written_as_in_rfc_8785_appendix_b() {
    for (bits, text) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        assert_eq!(canonical(&json!(f64::from_bits(bits))), text);
    }
}

#[test]
fn numbers_that_are_not_normalised_still_have_one_form() {
    assert_eq!(canonical(&json!([1.0, -0.0, u64::MAX, i64::MIN])), "[1,0,18446744073709552000,-9223372036854776000]");
}

#[test]
fn keys_are_sorted_by_utf_16_unit() {
    let value = json!({"\u{fb33}": 1, "\u{1f600}": 2, "\u{20ac}": 3, "\r": 4, "1": 5, "\u{ffff}": 6, "\u{10000}": 7});
    let expected = "{\"\\r\":4,\"1\":5,\"\u{20ac}\":3,\"\u{10000}\":7,\"\u{1f600}\":2,\"\u{fb33}\":1,\"\u{ffff}\":6}";
    assert_eq!(canonical(&value), expected);
}

#[test]
fn strings_are_escaped_as_little_as_rfc_8785_has_it() {
    let all: String = (0_u8..=0x7f).map(char::from).collect();
    let mut expected =
        String::from("\"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u000f");
    expected.push_str("\\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f");
    expected.push_str(
        " !\\\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\u{7f}\"",
    );
    assert_eq!(canonical(&json!(all)), expected);
}

proptest! {
    #[test]
    fn the_canonical_form_reads_back_as_the_same_value(value in any_value()) {
        prop_assert_eq!(parse(canonical(&value).as_bytes(), &ParseLimits::default()).unwrap(), value);
    }

    #[test]
    fn the_canonical_form_of_the_canonical_form_is_itself(value in any_value()) {
        let text = canonical(&value);
        prop_assert_eq!(canonical(&parse(text.as_bytes(), &ParseLimits::default()).unwrap()), text);
    }

    #[test]
    fn any_spelling_of_a_value_has_its_canonical_form(value in any_value()) {
        let pretty = serde_json::to_vec_pretty(&value).unwrap();
        prop_assert_eq!(canonical(&parse(&pretty, &ParseLimits::default()).unwrap()), canonical(&value));
    }

    #[test]
    fn a_string_is_as_long_as_was_counted(string in any::<String>()) {
        let mut text = Vec::new();
        write_string(&string, &mut text);
        prop_assert_eq!(text.len(), string_len(&string));
    }
}
