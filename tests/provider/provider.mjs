// A real OpenID provider on loopback, for the tests: people sign in by typing who they are.
//
// node provider.mjs '{"port": 0, "client": {…}, "alg": "RS256", "people": {"alice": {"groups": ["fin"]}}}'
//
// It prints its issuer, and ends when its standard input does. Each start makes new keys. PUT /people says anew who
// there is.
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { readFileSync } from 'node:fs';
import { generateKeyPairSync } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

// Standard output is for the issuer alone; nobody reads it after that.
console.info = console.error;

const folder = process.env.PROVIDER_MODULES;
const { Provider } = await import(pathToFileURL(join(folder, 'oidc-provider/lib/index.js')));

const asked = JSON.parse(process.argv[2]);
let people = asked.people;

const kinds = { RS256: ['rsa', { modulusLength: 2048 }], ES256: ['ec', { namedCurve: 'P-256' }], EdDSA: ['ed25519'] };
const key = (alg) => {
  const { privateKey } = generateKeyPairSync(...kinds[alg]);
  const jwk = privateKey.export({ format: 'jwk' });
  return { ...jwk, alg, use: 'sig', kid: `${alg}-${Date.now()}-${process.pid}` };
};

// The key is for nothing but this; the authority that signed the certificate is trusted by one test.
const tls = (name) => readFileSync(new URL(`tls/${name}.pem`, import.meta.url));
const server = asked.tls ? createSecureServer({ key: tls('key'), cert: tls('certificate') }) : createServer();
server.listen(asked.port ?? 0, '127.0.0.1', () => {
  const issuer = `${asked.tls ? 'https' : 'http'}://localhost:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ id_token_signed_response_alg: asked.alg, ...asked.client }],
    jwks: { keys: [key(asked.alg)] },
    enabledJWA: { idTokenSigningAlgValues: [asked.alg] },
    cookies: { keys: ['only for tests'] },
    scopes: ['openid', 'profile', 'groups'],
    claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
    conformIdTokenClaims: false,
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: {
        logoutSource: async (ctx, form) => {
          ctx.body = `<!doctype html><html lang="en"><title>The organisation</title><main><h1>Leave?</h1>${form}
            <button form="op.logoutForm" name="logout" value="yes">Sign out everywhere</button></main>`;
        },
      },
    },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_, id) =>
      people[id] && { accountId: id, claims: () => ({ sub: id, preferred_username: id, ...people[id] }) },
    // Whoever signs in agrees.
    loadExistingGrant: async (ctx) => {
      const grant = new provider.Grant({
        clientId: ctx.oidc.client.clientId,
        accountId: ctx.oidc.session.accountId,
      });
      grant.addOIDCScope('openid profile groups');
      await grant.save();
      return grant;
    },
  });
  const callback = provider.callback();
  const page = (response, body) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(`<!doctype html><html lang="en"><title>The organisation</title><main><h1>Who are you?</h1>${body}</main>`);
  };
  const read = async (request) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    return text;
  };
  server.on('request', async (request, response) => {
    const path = new URL(request.url, issuer).pathname;
    try {
      if (path === '/people' && request.method === 'PUT') {
        people = JSON.parse(await read(request));
        response.end();
      } else if (path.startsWith('/interaction/') && request.method === 'GET') {
        await provider.interactionDetails(request, response);
        page(response, `<form method="post" action="${path}"><label>Name <input name="login"></label>
          <button name="answer" value="yes">Sign in</button> <button name="answer" value="no">Refuse</button></form>`);
      } else if (path.startsWith('/interaction/') && request.method === 'POST') {
        const form = new URLSearchParams(await read(request));
        const refused = { error: 'access_denied', error_description: 'the person said no' };
        const result = form.get('answer') === 'no' ? refused : { login: { accountId: form.get('login') } };
        await provider.interactionFinished(request, response, result);
      } else {
        await callback(request, response);
      }
    } catch (error) {
      response.statusCode = 500;
      response.end(String(error));
    }
  });
  console.log(issuer);
});

process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
