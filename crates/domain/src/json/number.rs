//! Numbers: one `Number` for each value, and only decimals that a double represents exactly.

use serde_json::{Number, Value};

#[cfg(test)]
mod tests;

/// The largest integer up to which every integer is a double: 2^53 − 1.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// No double needs more significant digits than this to be distinct from the next double.
const DIGITS_MAX: u32 = 17;

/// Number of digits that always fit a `u64`. Further digits must be zeros, or there are too many.
const DIGITS_KEPT: u32 = 19;

/// Every decimal with this many significant digits survives the conversion to a (normal) double, so its shortest form
/// need not be compared.
const DIGITS_ALWAYS_EXACT: u32 = 15;

/// Doubles lie between 5e-324 and 1.8e308. A decimal outside this range is rejected without a computation.
const MAGNITUDE: std::ops::RangeInclusive<i64> = -325..=310;

/// The limit at which the reader stops counting an exponent. No text is long enough to balance such an exponent.
const EXPONENT_MAX: i64 = 1 << 48;

/// Powers of ten that are exact doubles, so that one product or quotient rounds correctly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Returns the number for a double. An integer within ±(2^53 − 1) becomes an integer, and `-0` becomes `0`. NaN and
/// the infinities, which JSON does not have, return `None`.
pub fn number(double: f64) -> Option<Number> {
    #[expect(clippy::cast_possible_truncation, reason = "compared after the cast")]
    let integer = double as i64;
    #[expect(clippy::cast_precision_loss, reason = "within 2^53 there is none")]
    let whole = integer.unsigned_abs() <= INTEGER_MAX && integer as f64 == double;
    if whole { Some(Number::from(integer)) } else { Number::from_f64(double) }
}

/// Normalizes every number of a value that `parse` did not read. An integer that no double holds becomes the nearest
/// double, as RFC 8785 writes it.
pub fn normalise(value: &mut Value) {
    match value {
        Value::Number(it) => {
            if let Some(normal) = it.as_f64().and_then(number) {
                *it = normal;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Object(members) => members.values_mut().for_each(normalise),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Returns the number of a JSON number's text, or `None` if its decimal value differs from the shortest double. The
/// text must be a valid JSON number.
pub(super) fn exact(text: &str) -> Option<Number> {
    let decimal = Decimal::read(text.as_bytes())?;
    // Zero has no magnitude, and each of its spellings is the same number.
    if decimal.digits == 0 {
        return Some(Number::from(0));
    }
    if !MAGNITUDE.contains(&decimal.magnitude()) {
        return None;
    }
    if let Some(integer) = decimal.integer() {
        return Some(Number::from(integer));
    }
    match decimal.simple_double() {
        Some(double) => number(double),
        None => {
            let double: f64 = text.parse().ok().filter(|it: &f64| it.is_finite())?;
            let mut buffer = ryu_js::Buffer::new();
            let shortest = Decimal::read(buffer.format_finite(double).as_bytes())?;
            // Another decimal that rounds to this double would change silently when it is written back.
            if shortest == decimal { number(double) } else { None }
        }
    }
}

/// A decimal as `±digits × 10^exponent`, without zeros at the end: one form per value.
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
struct Decimal {
    negative: bool,
    digits: u64,
    digit_count: u32,
    exponent: i64,
}

impl Decimal {
    /// Reads a number's text in one pass; `None` if it has more significant digits than any double needs.
    fn read(text: &[u8]) -> Option<Self> {
        let (mut digits, mut digits_kept) = (0_u64, 0_u32);
        let (mut zeros_dropped, mut exponent, mut point) = (0_i64, 0, None);
        let mut mantissa_end = text.len();
        for (index, byte) in text.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                if digits_kept < DIGITS_KEPT {
                    digits = digits * 10 + u64::from(digit);
                    // Leading zeros are not significant.
                    digits_kept += u32::from(digits != 0);
                } else if digit == 0 {
                    // A zero after the stored digits changes only the exponent.
                    zeros_dropped += 1;
                } else {
                    return None;
                }
            } else if *byte == b'.' {
                point = Some(index + 1);
            } else if matches!(byte, b'e' | b'E') {
                exponent = read_exponent(&text[index + 1..]);
                mantissa_end = index;
                break;
            }
        }
        if let Some(point) = point {
            exponent -= i64::try_from(mantissa_end - point).ok()?;
        }
        let negative = text.first() == Some(&b'-');
        Self::without_zeros(negative, digits, exponent + zeros_dropped)
    }

    fn without_zeros(negative: bool, mut digits: u64, mut exponent: i64) -> Option<Self> {
        while digits != 0 && digits.is_multiple_of(10) {
            digits /= 10;
            exponent += 1;
        }
        let digit_count = digits.checked_ilog10().map_or(0, |it| it + 1);
        if digit_count > DIGITS_MAX { None } else { Some(Self { negative, digits, digit_count, exponent }) }
    }

    /// Returns the exponent in the form `0.d… × 10^magnitude`.
    fn magnitude(&self) -> i64 {
        self.exponent + i64::from(self.digit_count)
    }

    /// Returns the value, if it is an integer within ±(2^53 − 1).
    fn integer(&self) -> Option<i64> {
        // A larger power alone exceeds 2^53, and its computation could overflow.
        let power = u32::try_from(self.exponent).ok().filter(|it| *it < DIGITS_MAX)?;
        let size = self.digits.checked_mul(10_u64.pow(power)).filter(|it| *it <= INTEGER_MAX)?;
        let size = i64::try_from(size).ok()?;
        Some(if self.negative { -size } else { size })
    }

    /// Returns the value as a double, if one rounding is enough and the shortest form need not be compared.
    fn simple_double(&self) -> Option<f64> {
        if self.digit_count > DIGITS_ALWAYS_EXACT {
            return None;
        }
        let power = *EXACT_POWERS.get(usize::try_from(self.exponent.unsigned_abs()).ok()?)?;
        #[expect(clippy::cast_precision_loss, reason = "15 digits are below 2^53")]
        let digits = self.digits as f64;
        let size = if self.exponent < 0 { digits / power } else { digits * power };
        Some(if self.negative { -size } else { size })
    }
}

/// Reads the exponent after its `e`, limited before any arithmetic.
fn read_exponent(text: &[u8]) -> i64 {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let size = digits.iter().fold(0_i64, |sum, it| (sum * 10 + i64::from(it - b'0')).min(EXPONENT_MAX));
    if negative { -size } else { size }
}
