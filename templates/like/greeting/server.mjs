// A server of the protocol in this folder, to be replaced by yours. Usage: node server.mjs PORT
import { randomUUID } from 'node:crypto';

const { WebSocketServer } = await import('ws').catch(() => {
  console.error('server.mjs needs the package ws: npm install');
  process.exit(1);
});
const DEFECT = process.env.DEFECT; // set by the mutants of frameproof.toml

// The JSON of a message; null if there is none. Half of a surrogate pair is not Unicode.
function parse(data, binary) {
  const whole = (text) => typeof text !== 'string' || text.isWellFormed();
  const check = (key, value) => {
    if (!whole(key) || !whole(value)) throw new SyntaxError('half a surrogate pair');
    return value;
  };
  try {
    return binary ? null : JSON.parse(data, check);
  } catch {
    return null;
  }
}

// The error of an invalid command; undefined for a valid one.
function mistake(message) {
  if (message === null || typeof message !== 'object' || Array.isArray(message)) return 'not a JSON object';
  if (!['hello', 'say', 'ping', 'bye'].includes(message.type)) return 'no such command';
  const field = { say: 'text', ping: 'n' }[message.type];
  if (field && typeof message[field] !== 'string') return `${field} must be a string`;
}

new WebSocketServer({ port: Number(process.argv[2]), host: '127.0.0.1', path: '/ws' }).on('connection', (socket) => {
  const send = (type, fields) => socket.send(JSON.stringify({ type, ...fields }));
  let seq = 0;
  let greeted = false;
  socket.on('error', () => {}); // a violation of RFC 6455: the connection ends
  socket.on('message', (data, binary) => {
    if (socket.readyState !== socket.OPEN) return;
    const message = parse(data, binary);
    const wrong = mistake(message);
    const type = wrong ? undefined : message.type;
    if (!greeted && type !== 'hello') return socket.close(4401, 'hello first');
    if (wrong || (greeted && type === 'hello')) return send('error', { message: wrong ?? 'hello comes once' });
    if (type === 'hello') {
      greeted = true;
      send('welcome', { room: randomUUID() });
    } else if (type === 'say') {
      send('said', { text: message.text, seq: seq + 1 });
      send('done', { seq: seq + (DEFECT === 'numbers-repeat' ? 1 : 2) });
      seq += 2;
    } else if (type === 'ping') {
      send('pong', { n: message.n });
    } else {
      socket.close(DEFECT === 'bye-closes-with-1000' ? 1000 : 4000, 'bye');
    }
  });
});
