// A server of the protocol in this folder, to be replaced by yours. Usage: node server.mjs PORT
const { WebSocketServer } = await import('ws').catch(() => {
  console.error('server.mjs needs the package ws: npm install');
  process.exit(1);
});
const DEFECT = process.env.DEFECT; // set by the mutants of frameproof.toml
const METHODS = { initialize: {}, add: { a: 'integer', b: 'integer' }, count: { to: 'integer', token: 'string' }, ping: {} };

// A request that is answered with an error.
class Mistake extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

function parse(data) {
  const whole = (text) => typeof text !== 'string' || text.isWellFormed();
  try {
    return JSON.parse(data, (key, value) => {
      if (!whole(key) || !whole(value)) throw new SyntaxError('fails for half of a surrogate pair, which is not Unicode');
      return value;
    });
  } catch {
    throw new Mistake(-32700, 'this is not JSON');
  }
}

// The id under which a message is answered; null if it has no valid one.
function requestId(message) {
  const id = isObject(message) ? message.id : null;
  return typeof id === 'string' || Number.isInteger(id) ? id : null;
}

// Throws the error of an invalid request.
function check(message) {
  if (!isObject(message) || message.jsonrpc !== '2.0' || typeof message.method !== 'string') {
    throw new Mistake(-32600, 'this is no request');
  }
  if ('id' in message && requestId(message) === null) throw new Mistake(-32600, 'an id is a string or an integer');
  const params = message.params === undefined ? {} : message.params;
  if (!isObject(params)) throw new Mistake(-32602, 'params must be an object');
  const known = Object.hasOwn(METHODS, message.method) ? METHODS[message.method] : {};
  for (const [name, kind] of Object.entries(known)) {
    const value = params[name];
    if (kind === 'string' && typeof value !== 'string') throw new Mistake(-32602, `${name} must be a string`);
    if (kind === 'integer' && !(Number.isInteger(value) && value >= 0 && value <= 100)) {
      throw new Mistake(-32602, `${name} must be an integer from 0 to 100`);
    }
  }
}

// The result of a request.
function call({ method, params }, initialized, notify) {
  if (!Object.hasOwn(METHODS, method)) throw new Mistake(-32601, 'there is no such method');
  if (!initialized && method !== 'initialize') throw new Mistake(-32002, 'initialize first');
  if (method === 'initialize') return { server: 'rpc' };
  if (method === 'add') return { sum: params.a + params.b };
  for (let at = 1; method === 'count' && at <= params.to; at++) notify('progress', { token: params.token, at });
  return {};
}

new WebSocketServer({ port: Number(process.argv[2]), host: '127.0.0.1', path: '/ws' }).on('connection', (socket) => {
  const send = (message) => socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
  let initialized = false;
  socket.on('error', () => {}); // a violation of RFC 6455: the connection ends
  socket.on('message', (data, binary) => {
    if (socket.readyState !== socket.OPEN) return;
    if (binary) return socket.close(1003, 'text only');
    let message = null;
    try {
      message = parse(data);
      check(message);
      if (message.method === 'exit' && !('id' in message)) {
        return socket.close(DEFECT === 'exit-closes-with-1000' ? 1000 : 4000, 'exit');
      }
      if (!('id' in message)) return; // an unknown notification
      const result = call(message, initialized, (method, params) => send({ method, params }));
      initialized = true;
      send({ id: message.id, result });
      if (DEFECT === 'answers-twice' && message.method === 'add') send({ id: message.id, result });
    } catch (mistake) {
      if (!(mistake instanceof Mistake)) throw mistake;
      send({ id: requestId(message), error: { code: mistake.code, message: mistake.message } });
    }
  });
});
