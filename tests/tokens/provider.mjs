// An OpenID Connect provider for tests: node provider.mjs MODULE PORT JWKS-FILE. Prints its URL when it listens.
// Tokens are for the audience `lance`: for an hour, or for two seconds if the resource is `urn:lance:short`.
import { readFileSync } from 'node:fs'

const [module, port, keys] = process.argv.slice(2)
const { default: Provider } = await import(module)
const issuer = `http://127.0.0.1:${port}`
const device = 'urn:ietf:params:oauth:grant-type:device_code'
const common = { redirect_uris: [], response_types: [] }

const provider = new Provider(issuer, {
  clients: [
    { ...common, client_id: 'service', client_secret: 'service-secret', grant_types: ['client_credentials'] },
    {
      ...common,
      client_id: 'command-line',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: [device, 'refresh_token'],
    },
  ],
  jwks: JSON.parse(readFileSync(keys, 'utf-8')),
  cookies: { keys: ['test'] },
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
  extraTokenClaims: () => ({ groups: ['writers'] }),
  features: {
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => 'urn:lance',
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, resource) => ({
        scope: 'read',
        audience: 'lance',
        accessTokenFormat: 'jwt',
        accessTokenTTL: resource === 'urn:lance:short' ? 2 : 3600,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
})
provider.listen(Number(port), '127.0.0.1', () => console.log(issuer))
