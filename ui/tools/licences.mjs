// SPDX-License-Identifier: Apache-2.0

// The licences of what is bundled into the page: package.json's dependencies and theirs. --write writes licences.txt,
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

const text = [...found.keys()].sort().map((name) => found.get(name)).join("\n" + "-".repeat(80) + "\n\n");
const file = join(root, "licences.txt");
if (process.argv[2] === "--write") {
  writeFileSync(file, text);
} else if (!existsSync(file) || readFileSync(file, "utf8") !== text) {
  console.error("ui/licences.txt is not what is bundled: node tools/licences.mjs --write");
  process.exit(1);
}
