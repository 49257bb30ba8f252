// SPDX-License-Identifier: Apache-2.0

// The licences of what is bundled into the page: package.json's dependencies and theirs; after them those of its tools, by name. --write writes licences.txt,
// --check compares it.

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = new URL("..", import.meta.url).pathname;
const read = (path) => JSON.parse(readFileSync(path, "utf8"));

const found = new Map();
const follow = (name) => {
  const folder = join(root, "node_modules", name);
  if (found.has(name) || !existsSync(folder)) {
    return;
  }
  const about = read(join(folder, "package.json"));
  const file = readdirSync(folder).find((f) => /^(licen[cs]e|copying)(\.\w+)?$/i.test(f));
  if (!file || !about.license) {
    throw new Error(`${name} does not say its licence: find out before it is bundled`);
  }
  found.set(name, `${name} ${about.version}: ${about.license}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`);
  Object.keys(about.dependencies ?? {}).forEach(follow);
};
Object.keys(read(join(root, "package.json")).dependencies).forEach(follow);

// What builds and tests the page is no part of it: its licences are named.
const tools = Object.keys(read(join(root, "package.json")).devDependencies).sort()
  .map((name) => read(join(root, "node_modules", name, "package.json")))
  .map(({ name, version, license }) => `${name} ${version}: ${license}\n`);

const line = "-".repeat(80);
const text = [...[...found.keys()].sort().map((name) => found.get(name)),
  `Not in the page, but in use to build and test it:\n\n${tools.join("")}`].join(`\n${line}\n\n`);
const file = join(root, "licences.txt");
if (process.argv[2] === "--write") {
  writeFileSync(file, text);
} else if (!existsSync(file) || readFileSync(file, "utf8") !== text) {
  console.error("ui/licences.txt is not what is bundled: node tools/licences.mjs --write");
  process.exit(1);
}
