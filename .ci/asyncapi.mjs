// Validates AsyncAPI documents with the official parser: prints its errors, exit code 1 if there are any.
import { readFileSync } from 'node:fs';
import { Parser } from '@asyncapi/parser';

let failed = false;
for (const path of process.argv.slice(2)) {
  const { document, diagnostics } = await new Parser().parse(readFileSync(path, 'utf8'), { source: path });
  const errors = diagnostics.filter((diagnostic) => diagnostic.severity === 0);
  for (const { message, path: at } of errors) console.error(`${path}: ${at.join('/')}: ${message}`);
  if (!document || errors.length > 0) failed = true;
  else console.log(`${path}: valid AsyncAPI ${document.version()}`);
}
process.exit(failed ? 1 : 0);
