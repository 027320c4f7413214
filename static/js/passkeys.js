// Passkeys: asks the browser to sign the challenge of a form, and puts the result into the form.
//
// The gateway computes the signed data and verifies the signature. This script decides nothing.

const encode = (buffer) => {
  const text = Array.from(new Uint8Array(buffer), (it) => String.fromCharCode(it)).join("");
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
};
const decode = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (it) => it.charCodeAt(0));
const descriptors = (ids) => (ids || "").split(" ").filter(Boolean).map((it) => ({ type: "public-key", id: decode(it) }));

// The authenticator must verify the user. The gateway rejects a signature without that.
const userVerification = "required";

async function sign(form, challenge) {
  const { rp, allow } = form.dataset;
  const publicKey = { challenge: decode(challenge), rpId: rp, allowCredentials: descriptors(allow), userVerification };
  const { rawId, response } = await navigator.credentials.get({ publicKey });
  const said = {
    authenticator_data: encode(response.authenticatorData),
    client_data: encode(response.clientDataJSON),
    passkey: encode(rawId),
    signature: encode(response.signature),
  };
  form.elements.assertion.value = JSON.stringify(said);
  if (form.elements.account) form.elements.account.value = new TextDecoder().decode(response.userHandle || new Uint8Array());
}

// ES256, which every authenticator has, and RS256 for older ones.
const KINDS = [-7, -257].map((alg) => ({ type: "public-key", alg }));

async function register(form) {
  const { rp, challenge, user, userName, allow } = form.dataset;
  const publicKey = {
    rp: { id: rp, name: "Countersign" },
    user: { id: new TextEncoder().encode(user), name: userName, displayName: userName },
    challenge: decode(challenge),
    pubKeyCredParams: KINDS,
    authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification },
    excludeCredentials: descriptors(allow),
    attestation: "none",
  };
  const { response } = await navigator.credentials.create({ publicKey });
  const said = { attestation: encode(response.attestationObject), client_data: encode(response.clientDataJSON) };
  form.elements.registration.value = JSON.stringify(said);
}

// Makes the next signature of a form. Browsers require a click before each one.
async function step(form, button) {
  const { passkey, challenge, confirm } = form.dataset;
  if (passkey !== "add") {
    await sign(form, challenge);
    return true;
  }
  if (confirm && !form.elements.assertion.value) {
    await sign(form, confirm);
    button.textContent = "Register the new passkey";
    return false;
  }
  await register(form);
  return true;
}

const WHY = {
  NotAllowedError: "Nothing was signed. You cancelled, the time ran out, or this device has no matching passkey. Try again.",
  InvalidStateError: "This device already has one of your passkeys. Use another device or security key.",
  SecurityError: "The browser does not allow passkeys at this address. Ask an administrator to check public_url.",
};

function setUp(form) {
  const button = form.querySelector("[data-passkey-go]");
  const problem = form.querySelector("[data-passkey-problem]");
  form.querySelector("[data-passkey-without]").hidden = true;
  const say = (words) => {
    problem.textContent = words;
    problem.hidden = !words;
  };
  if (!window.PublicKeyCredential) {
    say("This browser does not support passkeys, or does not allow them at this address.");
    return;
  }
  button.hidden = false;
  let busy = false;
  form.addEventListener("submit", async (event) => {
    if (event.submitter !== button) return;
    event.preventDefault();
    if (busy) return;
    busy = true;
    say("");
    try {
      // The page may have disabled the form during the request.
      if ((await step(form, button)) && !form.matches("[data-shut], [data-resting]")) form.submit();
    } catch (error) {
      say(WHY[error.name] || `The browser reported an error: ${error.name}. Try again.`);
    } finally {
      busy = false;
    }
  });
}

document.querySelectorAll("form[data-passkey]").forEach(setUp);
