// A server of npm's `graphql-ws` to test. Usage: node server.mjs PORT
import { WebSocketServer } from 'ws';
import { useServer } from 'graphql-ws/lib/use/ws';
import { GraphQLError, GraphQLInt, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { worsen } from './defects.mjs';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const number = { type: new GraphQLNonNull(GraphQLInt) };
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({
    name: 'Query',
    fields: {
      hello: { type: GraphQLString, resolve: () => 'world' },
      later: { type: GraphQLString, args: { ms: number }, resolve: (_, { ms }) => pause(ms).then(() => 'late') },
      fails: { type: GraphQLString, resolve: () => { throw new GraphQLError('it fails'); } },
    },
  }),
  subscription: new GraphQLObjectType({
    name: 'Subscription',
    fields: {
      count: {
        type: GraphQLInt,
        args: { to: number, every: number },
        subscribe: async function* (_, { to, every }) {
          for (let at = 1; at <= to; at++) {
            if (every) await pause(every);
            yield { count: at };
          }
        },
      },
    },
  }),
});
const onConnect = ({ connectionParams }) => connectionParams?.token !== 'wrong';
const server = new WebSocketServer({ port: Number(process.argv[2]), host: '127.0.0.1', path: '/graphql' });
useServer({ schema, onConnect, connectionInitWaitTimeout: 1000 }, server);
worsen(server, process.env.DEFECT); // set by the mutants of frameproof.toml
