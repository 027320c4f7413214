"""JSON texts with the answer each must get, written by hand: the canonical form, or a code."""

from __future__ import annotations

import base64

from strict_json import Json

# (name, text, canonical form)
ACCEPTED: list[tuple[str, str, str]] = [
    ("null", "null", "null"),
    ("booleans in an array", "[true,false]", "[true,false]"),
    ("whitespace is dropped", ' \t\r\n{ "a" : [ 1 , 2 ] }\n', '{"a":[1,2]}'),
    ("empty containers", '{"b":[],"a":{}}', '{"a":{},"b":[]}'),
    ("an empty key", '{"":1}', '{"":1}'),
    ("keys are sorted", '{"b":1,"a":2,"B":3,"10":4,"9":5}', '{"10":4,"9":5,"B":3,"a":2,"b":1}'),
    ("a key that begins another comes first", '{"ab":1,"a":2}', '{"a":2,"ab":1}'),
    (
        "keys are sorted by UTF-16 unit: an emoji before U+FB33",
        '{"\\ufb33":1,"\\ud83d\\ude00":2,"\\u20ac":3,"\\r":4,"1":5,"\\u0080":6,"\\u00f6":7}',
        '{"\\r":4,"1":5,"\u0080":6,"ö":7,"€":3,"😀":2,"\ufb33":1}',
    ),
    (
        "the example of RFC 8785, 3.2.2, with 16 digits",
        '{"numbers": [333333333.3333333, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
        ' "string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/",'
        ' "literals": [null, true, false]}',
        '{"literals":[null,true,false],'
        '"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ),
    ("short escapes", '"\\b\\t\\n\\f\\r\\"\\\\\\/"', '"\\b\\t\\n\\f\\r\\"\\\\/"'),
    ("other controls in lower-case hex", '"\\u0000\\u001F\\u000B"', '"\\u0000\\u001f\\u000b"'),
    ("DEL and line separators stay as they are", '"\\u007f\\u2028\\u2029"', '"\u007f\u2028\u2029"'),
    ("escapes of plain characters go", '"\\u0041\\u00e9\\u4e2d"', '"Aé中"'),
    ("a surrogate pair is one character", '"\\uD83D\\uDE00"', '"😀"'),
    ("noncharacters are characters", '"\\uffff\\ufffe"', '"\uffff\ufffe"'),
    ("values are not normalised", '["\\u00e9","e\\u0301"]', '["é","e\u0301"]'),
    ("keys keep their form", '{"e\\u0301":1}', '{"e\u0301":1}'),
    (
        "NFC-equal keys of different objects",
        '[{"\\u00e9":1},{"e\\u0301":2}]',
        '[{"é":1},{"e\u0301":2}]',
    ),
    (
        "NFKC-equal keys are two",
        '{"\\ufb01":1,"fi":2}',
        '{"fi":2,"\ufb01":1}',
    ),
    ("keys that differ in case are two", '{"A":1,"a":2}', '{"A":1,"a":2}'),
    ("the same key at two levels", '{"a":{"a":1}}', '{"a":{"a":1}}'),
    ("a key that looks like a pointer", '{"/a~1":1}', '{"/a~1":1}'),
    ("__proto__ is a key", '{"__proto__":{"x":1}}', '{"__proto__":{"x":1}}'),
    ("brackets in a string are no levels", '"' + "[" * 70 + '"', '"' + "[" * 70 + '"'),
    ("zero", "0", "0"),
    ("minus zero is zero", "-0", "0"),
    ("minus zero with a fraction", "-0.0", "0"),
    ("minus zero with an exponent", "-0e5", "0"),
    ("1.0 is 1", "1.0", "1"),
    ("many zeros", "1.00000000000000000000000000000000", "1"),
    ("1e2 is 100", "1e2", "100"),
    ("an exponent with zeros before it", "1E+0000000000000000000000000002", "100"),
    ("a mantissa and exponent that cancel", "100000000000000000000000000e-26", "1"),
    ("-1.50", "-1.50", "-1.5"),
    ("0.1", "0.1", "0.1"),
    ("0.1 with a zero", "0.10", "0.1"),
    ("0.000001 is written out", "1e-6", "0.000001"),
    ("1e-7 is not", "0.0000001", "1e-7"),
    ("1e20 is written out", "1e20", "100000000000000000000"),
    ("1e21 is not", "1000000000000000000000", "1e+21"),
    ("17 digits", "0.30000000000000004", "0.30000000000000004"),
    ("2^53-1", "9007199254740991", "9007199254740991"),
    ("-(2^53-1)", "-9007199254740991", "-9007199254740991"),
    ("2^53", "9007199254740992", "9007199254740992"),
    ("2^53+2", "9007199254740994", "9007199254740994"),
    ("2^53 with a fraction", "9007199254740992.0", "9007199254740992"),
    ("2^63 as its shortest double", "9223372036854776000", "9223372036854776000"),
    ("2^68 as its shortest double", "295147905179352830000", "295147905179352830000"),
    ("1.23e19", "12345678901234567000", "12345678901234567000"),
    ("the largest double", "1.7976931348623157e308", "1.7976931348623157e+308"),
    ("the smallest double", "5e-324", "5e-324"),
    ("the smallest normal double", "2.2250738585072014e-308", "2.2250738585072014e-308"),
    ("RFC 8785 B: 1e23", "1e+23", "1e+23"),
    ("RFC 8785 B: below 1e21", "999999999999999900000", "999999999999999900000"),
    ("RFC 8785 B: -4.3e-7 or so", "-0.0000033333333333333333", "-0.0000033333333333333333"),
    ("RFC 8785 B: 1424953923781206.2", "1424953923781206.2", "1424953923781206.2"),
    ("RFC 8785 B: 9.999999999999997e22", "9.999999999999997e22", "9.999999999999997e+22"),
]

# (name, text, code)
REFUSED: list[tuple[str, str | bytes, str]] = [
    ("nothing", "", "empty"),
    ("only whitespace", " \t\r\n", "empty"),
    ("a duplicate key", '{"a":1,"a":1}', "duplicate_key"),
    ("a duplicate key further down", '{"x":[0,{"a":1,"b":2,"a":3}]}', "duplicate_key"),
    ("a duplicate key, one escaped", '{"a":1,"\\u0061":2}', "duplicate_key"),
    ("a duplicate empty key", '{"":1,"":2}', "duplicate_key"),
    ("keys equal after NFC", '{"\\u00e9":1,"e\\u0301":2}', "duplicate_key"),
    ("keys equal after NFC, literal", '{"é":1,"e\u0301":2}', "duplicate_key"),
    ("keys equal after NFC: Hangul", '{"\\uac00":1,"\\u1100\\u1161":2}', "duplicate_key"),
    ("keys equal after NFC: Angstrom", '{"\\u212b":1,"\\u00c5":2}', "duplicate_key"),
    (
        "keys equal after NFC: order of marks",
        '{"q\\u0307\\u0323":1,"q\\u0323\\u0307":2}',
        "duplicate_key",
    ),
    ("NaN", "NaN", "not_a_number"),
    ("Infinity", '{"a":Infinity}', "not_a_number"),
    ("-Infinity", "[-Infinity]", "not_a_number"),
    ("20 digits", "12345678901234567890", "number_not_exact"),
    ("2^53+1", "9007199254740993", "number_not_exact"),
    ("-(2^53+1)", '{"a":[-9007199254740993]}', "number_not_exact"),
    ("2^63", "9223372036854775808", "number_not_exact"),
    (
        "2^68, exactly the double but not its shortest form",
        "295147905179352825856",
        "number_not_exact",
    ),
    ("more digits than a double has", "0.1000000000000000055", "number_not_exact"),
    ("all digits of the double 0.1", "0.1000000000000000055511151231257827", "number_not_exact"),
    ("18 digits", "0.300000000000000041", "number_not_exact"),
    ("the 17 digits in the example of RFC 8785, 3.2.2", "333333333.33333329", "number_not_exact"),
    ("above the largest double", "1e309", "number_not_exact"),
    ("far above the largest double", "1e400", "number_not_exact"),
    ("a huge exponent", "1e999999999999999999999999", "number_not_exact"),
    ("a huge negative exponent", "-1e-999999999999999999999999", "number_not_exact"),
    ("below the smallest double", "1e-324", "number_not_exact"),
    ("rounded to the smallest double", "4.9e-324", "number_not_exact"),
    ("rounded to the largest double", "1.7976931348623158e308", "number_not_exact"),
    ("a lone high surrogate", '"\\ud800"', "encoding"),
    ("a lone low surrogate", '"a\\udc00"', "encoding"),
    ("surrogates in the wrong order", '"\\ude00\\ud83d"', "encoding"),
    ("a high surrogate before a character", '"\\ud83dx"', "encoding"),
    ("two high surrogates", '"\\ud83d\\ud83d\\ude00"', "encoding"),
    ("a lone surrogate in a key", '{"\\udfff":1}', "encoding"),
    ("a bare continuation byte", b'"\x80"', "encoding"),
    ("an overlong slash", b'"\xc0\xaf"', "encoding"),
    ("an encoded surrogate", b'"\xed\xa0\x80"', "encoding"),
    ("above U+10FFFF", b'"\xf4\x90\x80\x80"', "encoding"),
    ("a cut-off character", b'"\xe2\x82"', "encoding"),
    ("UTF-16", b"\xff\xfe1\x00", "encoding"),
    ("a byte-order mark", "\ufeff1", "syntax"),
    ("a second value", "1 2", "syntax"),
    ("something after the value", "{}x", "syntax"),
    ("two documents", '{"a":1}\n{"a":2}', "syntax"),
    ("a NUL after the value", "1\u0000", "syntax"),
    ("a cut-off object", '{"a":1', "syntax"),
    ("a cut-off string", '"abc', "syntax"),
    ("a cut-off escape", '"\\u00', "syntax"),
    ("a trailing comma in an array", "[1,]", "syntax"),
    ("a trailing comma in an object", '{"a":1,}', "syntax"),
    ("a missing comma", "[1 2]", "syntax"),
    ("a missing colon", '{"a" 1}', "syntax"),
    ("a key without quotes", "{a:1}", "syntax"),
    ("single quotes", "'a'", "syntax"),
    ("a comment", "[1] // x", "syntax"),
    ("brackets that do not match", "[1}", "syntax"),
    ("a newline in a string", '"a\nb"', "syntax"),
    ("a tab in a string", '"a\tb"', "syntax"),
    ("an unknown escape", '"\\x41"', "syntax"),
    ("an escape with a sign", '"\\u+041"', "syntax"),
    ("True with a capital", "True", "syntax"),
    ("nul", "nul", "syntax"),
    ("nan in small letters", "nan", "syntax"),
    ("a plus sign", "+1", "syntax"),
    ("a leading zero", "01", "syntax"),
    ("a leading zero after minus", "-01", "syntax"),
    ("no digit before the point", ".5", "syntax"),
    ("no digit after the point", "1.", "syntax"),
    ("no digit in the exponent", "1e", "syntax"),
    ("no digit after the exponent's sign", "1e+", "syntax"),
    ("a minus alone", "-", "syntax"),
    ("hexadecimal", "0x10", "syntax"),
    ("an underscore", "1_000", "syntax"),
    ("digits of another script", "١", "syntax"),
    ("a no-break space", "\u00a01", "syntax"),
    ("a form feed", "\f1", "syntax"),
]


def _limited() -> list[dict[str, Json]]:
    """What the two limits do: 64 levels and as many bytes as given, not one more."""
    nest = "[" * 64 + "]" * 64
    objects = '{"a":' * 63
    return [
        {"name": "64 levels", "text": nest, "canonical": nest},
        {"name": "64 levels with a scalar within", "text": nest.replace("[]", "[1]"), "canonical": nest.replace("[]", "[1]")},
        {"name": "64 levels of both kinds", "text": objects + "[]" + "}" * 63, "canonical": objects + "[]" + "}" * 63},
        {"name": "65 levels", "text": f"[{nest}]", "code": "too_deep"},
        {"name": "65 levels of objects", "text": '{"a":' * 64 + "{}" + "}" * 64, "code": "too_deep"},
        {"name": "very deep and never closed", "text": "[" * 2000, "code": "too_deep"},
        {"name": "levels side by side do not add up", "text": "[" + "[[]]," * 70 + "[]]", "canonical": "[" + "[[]]," * 70 + "[]]"},
        {"name": "as many levels as the limit", "limits": {"depth_max": 2}, "text": "[[1],[2]]", "canonical": "[[1],[2]]"},
        {"name": "one level more", "limits": {"depth_max": 2}, "text": "[[[1]]]", "code": "too_deep"},
        {"name": "as many bytes as the limit", "limits": {"bytes_max": 7}, "text": '"12345"', "canonical": '"12345"'},
        {"name": "one byte more", "limits": {"bytes_max": 7}, "text": '"123456"', "code": "too_large"},
        {"name": "bytes count, not characters", "limits": {"bytes_max": 7}, "text": '"éééé"', "code": "too_large"},
        {"name": "whitespace counts", "limits": {"bytes_max": 7}, "text": '"12345" ', "code": "too_large"},
    ]  # fmt: skip


def json_cases() -> list[Json]:
    cases: list[Json] = []
    for name, text, form in ACCEPTED:
        cases.append({"name": name, "text": text, "canonical": form})
    for name, raw, code in REFUSED:
        if isinstance(raw, bytes):
            cases.append({"name": name, "base64": base64.b64encode(raw).decode(), "code": code})
        else:
            cases.append({"name": name, "text": raw, "code": code})
    return cases + list(_limited())
