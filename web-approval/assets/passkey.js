// Passkeys: asks the browser to make or use one, and puts what it says into the form, which is then sent as any other.
// What is signed stands in the form (data-passkey); who looks at it is the keeper.

const text = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const raw = (s) => Uint8Array.from(atob(s.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

async function say({ passkey, site, ids, make }) {
  const mine = ids.split(" ").filter(Boolean).map((id) => ({ type: "public-key", id: raw(id) }));
  const challenge = raw(passkey);
  if (make) {
    const made = await navigator.credentials.create({ publicKey: {
      challenge,
      rp: { id: site, name: "Countersign" },
      user: { id: new TextEncoder().encode(make), name: make, displayName: make },
      pubKeyCredParams: [-7, -8, -257].map((alg) => ({ type: "public-key", alg })),
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
      excludeCredentials: mine,
      attestation: "none",
    } });
    return [made.response.clientDataJSON, made.response.attestationObject];
  }
  const got = await navigator.credentials.get({ publicKey: {
    challenge, rpId: site, allowCredentials: mine, userVerification: "required",
  } });
  return [got.rawId, got.response.clientDataJSON, got.response.authenticatorData, got.response.signature];
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.addEventListener("submit", async (event) => {
    const field = form.elements.namedItem("passkey");
    if (field.value) return;
    event.preventDefault();
    const out = form.querySelector("output");
    out.textContent = "";
    try {
      field.value = (await say(form.dataset)).map(text).join(".");
      form.requestSubmit(event.submitter);
    } catch (why) {
      out.textContent = `The passkey was not used: ${why.message}`;
    }
  });
}
