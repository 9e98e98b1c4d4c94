// A server of the protocol in this folder, to be replaced by yours. Usage: node server.mjs PORT
const { WebSocketServer } = await import('ws').catch(() => {
  console.error('server.mjs needs the package ws: npm install');
  process.exit(1);
});
const DEFECT = process.env.DEFECT; // set by the mutants of frameproof.toml

const isText = (value) => typeof value === 'string' && value !== '';
const isNumber = (value) => Number.isInteger(value) && value >= 0 && value <= 100;
const FIELDS = { init: {}, ping: {}, subscribe: { id: isText, to: isNumber, every_ms: isNumber }, complete: { id: isText } };

// A valid message, or undefined.
function parse(data, binary) {
  const whole = (text) => typeof text !== 'string' || text.isWellFormed();
  let message;
  try {
    message = JSON.parse(data, (key, value) => {
      if (!whole(key) || !whole(value)) throw new SyntaxError('fails for half of a surrogate pair, which is not Unicode');
      return value;
    });
  } catch {
    return undefined;
  }
  if (binary || message === null || typeof message !== 'object') return undefined;
  if (typeof message.type !== 'string' || !Object.hasOwn(FIELDS, message.type)) return undefined;
  return Object.entries(FIELDS[message.type]).every(([name, fits]) => fits(message[name])) ? message : undefined;
}

new WebSocketServer({ port: Number(process.argv[2]), host: '127.0.0.1', path: '/ws' }).on('connection', (socket) => {
  const send = (message) => socket.readyState === socket.OPEN && socket.send(JSON.stringify(message));
  const running = new Map();
  let ready = false;

  function count(id, to, every, value = 1) {
    running.set(id, setTimeout(() => {
      if (value <= to) {
        send({ type: 'next', id, value });
        count(id, to, every, value + 1);
      } else {
        running.delete(id);
        send({ type: 'complete', id });
        if (DEFECT === 'value-after-complete') send({ type: 'next', id, value });
      }
    }, value <= to ? every : 0));
  }

  socket.on('error', () => {}); // a violation of RFC 6455: the connection ends
  socket.on('close', () => running.forEach((timer) => clearTimeout(timer)));
  socket.on('message', (data, binary) => {
    if (socket.readyState !== socket.OPEN) return;
    const message = parse(data, binary);
    if (!message) return socket.close(4400, 'invalid message');
    const { type, id } = message;
    if (type === 'ping') return send({ type: 'pong' });
    if (type === 'init' && ready) return socket.close(4429, 'init comes once');
    if (type === 'init') {
      ready = true;
      send({ type: 'ready' });
    } else if (!ready) {
      socket.close(4401, 'init first');
    } else if (type === 'complete') {
      clearTimeout(running.get(id));
      running.delete(id);
    } else if (running.has(id)) {
      socket.close(DEFECT === 'second-id-closes-with-4400' ? 4400 : 4409, 'the id is in use');
    } else {
      count(id, message.to, message.every_ms);
    }
  });
});
