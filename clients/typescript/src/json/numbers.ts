/** Numbers that are read exactly: the number that a reviewer read and the number that was hashed are the same. */

import { refused } from "../errors.js";

/** A decimal without leading and trailing zeros: `digits` times ten to the power of `exponent`. */
interface Decimal {
  readonly digits: string;
  readonly exponent: number;
}

// A longer exponent is out of range whatever the mantissa is, as long as a text has less than this many characters.
const exponentDigitsMax = 9;
const numberParts = /^-?([0-9]+)(?:\.([0-9]+))?(?:e([+-]?)([0-9]+))?$/i;

/** Returns the double of a number's text, or throws `number_not_exact` if its shortest decimal is another one. */
export function exactNumber(text: string): number {
  const number = Number(text);
  const read = decimal(text);
  if (read.digits === "") return 0;
  const shortest = Number.isFinite(number) ? decimal(String(number)) : undefined;
  if (shortest === undefined || shortest.digits !== read.digits || shortest.exponent !== read.exponent) {
    throw refused("number_not_exact", "The number cannot be represented exactly. Send it as a string.");
  }
  return number;
}

function decimal(text: string): Decimal {
  const [, whole = "", fraction = "", sign = "", power = "0"] = numberParts.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const bare = trimmedEnd(digits);
  const powerDigits = power.replace(/^0+/, "");
  const size = powerDigits.length > exponentDigitsMax ? Infinity : Number(powerDigits || "0");
  return { digits: bare, exponent: (sign === "-" ? -size : size) - fraction.length + digits.length - bare.length };
}

/** Removes zeros at the end. A regular expression would take quadratic time on many zeros in the middle. */
function trimmedEnd(digits: string): string {
  let end = digits.length;
  while (end > 0 && digits[end - 1] === "0") end -= 1;
  return digits.slice(0, end);
}
