// A server without the three known defects of graphql-ws 5.16.0, for the target `corrected`, and with one other defect each, for its mutants: what
// the library reads, sends and closes with is changed on the way.

const isStream = (message) => message?.payload?.query?.includes('subscription');
const closes = (from, code, reason) => ({ close: (event) => (event.code === from ? { code, reason: reason ?? event.reason } : event) });
const sends = (type, change) => ({ sends: (message, socket) => (message.type === type ? change(message, socket) : [message]) });
const reads = (type, change) => ({ reads: (message, socket) => (message.type === type ? change(message, socket) : message) });
const without = (message, key) => ({ ...message, payload: { ...message.payload, [key]: undefined } });
const exists = (id) => `Subscriber for ${id} already exists`;

// `reads` gives the message that the library sees in place of the client's, if any; `sends` gives the messages in place of one of the library's; `close`
// gives the close event, if any. `socket` has `say` and `shut`, which nothing changes, and what has come so far: `inits`, `acknowledged`, `running`
// (messages by id), `used` (all ids), `waiting`.
const DEFECTS = {
  none: {},
  'selects-the-first-protocol': { selects: (offered) => [...offered][0] },
  'close-is-not-answered': { opened: (socket) => socket._receiver.removeAllListeners('conclude') },
  'result-without-type': sends('next', ({ type, ...rest }) => [rest]),
  'result-without-payload': sends('next', ({ payload, ...rest }) => [rest]),
  'result-with-another-id': sends('next', (message) => [message, { ...message, id: 'nobody' }]),
  'one-operation-at-a-time': reads('subscribe', (message, socket) => {
    if (socket.running.size === 0 || socket.running.has(message.id)) return message;
    socket.waiting.push(message);
  }),
  'acknowledges-twice': sends('connection_ack', (message) => [message, message]),
  'waits-for-ever': { close: (event) => (event.code === 4408 ? undefined : event) },
  'timeout-is-1000': closes(4408, 1000),
  'timeout-without-reason': closes(4408, 4408, ''),
  'second-init-is-ignored': reads('connection_init', (message, socket) => (socket.inits > 1 ? undefined : message)),
  'second-init-is-4400': closes(4429, 4400),
  'second-init-without-reason': closes(4429, 4429, ''),
  'rejection-is-silence': { close: (event) => (event.code === 4403 ? undefined : event) },
  'rejection-is-4401': closes(4403, 4401),
  'rejection-without-reason': closes(4403, 4403, ''),
  'one-pong-for-several-pings': sends('pong', (message, socket) => {
    clearTimeout(socket.timer);
    socket.timer = setTimeout(() => socket.say(message), 20);
    return [];
  }),
  'pong-is-late': sends('pong', (message, socket) => {
    if (!socket.acknowledged) return [message];
    setTimeout(() => socket.say(message), 1500);
    return [];
  }),
  'pong-is-4400': reads('pong', (message, socket) => socket.shut(4400, 'no ping')),
  'ping-needs-init': reads('ping', (message, socket) => (socket.inits ? message : socket.shut(4401, 'Unauthorized'))),
  'executes-at-once': reads('subscribe', (message, socket) => {
    if (!socket.acknowledged) socket.say({ type: 'next', id: message.id, payload: { data: { hello: 'world' } } });
    return message;
  }),
  'too-early-is-4400': closes(4401, 4400),
  'too-early-without-reason': closes(4401, 4401, ''),
  'second-subscriber-is-ignored': reads('subscribe', (message, socket) => (socket.running.has(message.id) ? undefined : message)),
  'second-subscriber-is-4400': closes(4409, 4400),
  'second-subscriber-without-reason': closes(4409, 4409, ''),
  'ids-are-used-up': reads('subscribe', (message, socket) => (socket.used.has(message.id) ? socket.shut(4409, exists(message.id)) : message)),
  'no-operation-name': reads('subscribe', (message) => without(message, 'operationName')),
  'no-variables': reads('subscribe', (message) => (Array.isArray(message.payload?.variables) ? message : without(message, 'variables'))),
  'streams-have-no-end': sends('complete', (message, socket) => (isStream(socket.running.get(message.id)) ? [] : [message])),
  'failing-query-has-no-end': sends('complete', (message, socket) => {
    return socket.running.get(message.id)?.payload.query.includes('fails') ? [] : [message];
  }),
  'complete-after-error': sends('error', (message) => [message, { type: 'complete', id: message.id }]),
  'error-is-a-result': sends('error', ({ id, payload }) => [{ type: 'next', id, payload: { errors: payload } }, { type: 'complete', id }]),
  'result-after-complete': sends('complete', (message, socket) => {
    return isStream(socket.running.get(message.id)) ? [message, { type: 'next', id: message.id, payload: { data: {} } }] : [message];
  }),
  'two-results': sends('next', (message, socket) => (isStream(socket.running.get(message.id)) ? [message] : [message, message])),
  'streams-do-not-stop': reads('complete', (message, socket) => (isStream(socket.running.get(message.id)) ? undefined : message)),
  'queries-do-not-stop': reads('complete', (message, socket) => {
    return socket.running.has(message.id) && !isStream(socket.running.get(message.id)) ? undefined : message;
  }),
  'late-complete-is-4400': reads('complete', (message, socket) => {
    return socket.used.has(message.id) && !socket.running.has(message.id) ? socket.shut(4400, 'over') : message;
  }),
  'unknown-complete-is-4400': reads('complete', (message, socket) => (socket.used.has(message.id) ? message : socket.shut(4400, 'unknown'))),
  'invalid-is-1003': closes(4400, 1003),
  'invalid-is-ignored': { close: (event) => (event.code === 4400 ? undefined : event) },
};

function change(socket, defect) {
  const [send, close, on] = [socket.send.bind(socket), socket.close.bind(socket), socket.on.bind(socket)];
  Object.assign(socket, { inits: 0, acknowledged: false, running: new Map(), used: new Set(), waiting: [] });
  socket.say = (message) => socket.readyState === socket.OPEN && send(JSON.stringify(message));
  socket.shut = (code, reason) => void close(code, reason);
  defect.opened?.(socket);
  // The library has an id of its own for each operation, so that one that was stopped does not disturb the next one.
  const [inner, outer] = [new Map(), new Map()];
  let [count, take] = [0, undefined];

  socket.send = (text, done) => {
    const message = JSON.parse(text);
    done?.();
    if ('id' in message) {
      if (!outer.has(message.id)) return; // it was stopped
      const id = outer.get(message.id);
      if (message.type !== 'next') outer.delete(message.id);
      message.id = id;
    }
    for (const one of defect.sends?.(message, socket) ?? [message]) socket.say(one);
    socket.acknowledged ||= message.type === 'connection_ack';
    if (message.type === 'complete' || message.type === 'error') over(message.id);
  };
  socket.close = (code, reason) => {
    if (typeof reason !== 'string') return close(code, reason); // the answer to a close frame
    const event = { code, reason: code === 4409 ? exists(outer.get(reason.split(' ')[2])) : reason };
    const given = defect.close ? defect.close(event) : event;
    if (given) close(given.code, given.reason);
  };
  function over(id) {
    socket.running.delete(id);
    if (socket.running.size === 0 && socket.waiting.length > 0) read(socket.waiting.shift());
  }
  function read(message) {
    const { type, id } = message;
    if (['connection_ack', 'next', 'error'].includes(type)) return socket.shut(4400, 'a client does not send this');
    socket.inits += type === 'connection_init';
    const seen = defect.reads ? defect.reads(message, socket) : message;
    if (type === 'subscribe' && typeof id === 'string' && seen) {
      if (!socket.running.has(id)) inner.set(id, `${id}#${(count += 1)}`);
      outer.set(inner.get(id), id);
      socket.running.set(id, message);
      socket.used.add(id);
    }
    if (seen) take(JSON.stringify(inner.has(id) ? { ...seen, id: inner.get(id) } : seen));
    if (type === 'complete') {
      if (seen) outer.delete(inner.get(id));
      over(id);
    }
  }
  socket.on = (name, listener) => {
    if (name !== 'message') return on(name, listener);
    take = listener;
    return on(name, (data) => {
      let message;
      try {
        message = JSON.parse(data);
      } catch {
        return listener(data);
      }
      // What is no valid message is the library's business.
      return typeof message?.type === 'string' && (!('id' in message) || (typeof message.id === 'string' && message.id !== '')) ? read(message) : listener(data);
    });
  };
}

// Corrects the server and gives it a defect, if one is named.
export function worsen(server, name) {
  if (!name) return;
  const defect = DEFECTS[name];
  if (!defect) throw new Error(`there is no defect ${name}`);
  if (defect.selects) server.options.handleProtocols = defect.selects;
  server.prependListener('connection', (socket) => change(socket, defect));
}
