#!/usr/bin/env node
// Old syntax and static imports of old modules only: this file must also start on a Node that is too old for the rest.
import { existsSync } from 'node:fs';

var NEEDED = [22, 13];
var UNAVAILABLE = 69;

var version = process.versions.node.split('.').map(Number);
if (version[0] < NEEDED[0] || (version[0] === NEEDED[0] && version[1] < NEEDED[1])) {
  console.error(
    'pawl needs Node ' +
      NEEDED.join('.') +
      ' or newer, but this is Node ' +
      process.versions.node +
      ' (' +
      process.execPath +
      ').',
  );
  process.exitCode = UNAVAILABLE;
} else {
  start();
}

function start() {
  silenceSqliteWarning();
  var source = new URL('../src/cli/main.ts', import.meta.url);
  var main = existsSync(source) ? source : new URL('../dist/cli/main.js', import.meta.url);
  import(main.href)
    .then((cli) => cli.main(process.argv.slice(2)))
    .then(
      (exitCode) => {
        process.exitCode = exitCode;
      },
      (error) => {
        console.error(error);
        process.exitCode = 70;
      },
    );
}

// Node still calls its SQLite experimental; whoever runs a command cannot do anything about that.
function silenceSqliteWarning() {
  var emitWarning = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    if (String(warning).indexOf('SQLite is an experimental feature') === 0) return;
    emitWarning.call(process, warning, ...rest);
  };
}
